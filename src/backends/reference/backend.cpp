// The reference backend: every op by its own plain loops, on plain layouts, in f32 or f64.

#include <array>

#include "backends/registry.h"
#include "base/error.h"

namespace ridgeline {
namespace {

class ReferenceKernel final : public Kernel {
 public:
  explicit ReferenceKernel(const Problem& problem)
      : kind_(problem.node().kind), attributes_(problem.node().attributes) {
    for (const ValueId input : problem.node().inputs) {
      arguments_.push_back(problem.input_index(input));
    }
    input_layouts.assign(problem.inputs.size(), Layout::plain());
    output_layouts.assign(problem.outputs.size(), Layout::plain());
    traits = {.deterministic = true, .capturable = true, .slices = true, .in_place = false};
    for (const ValueId output : problem.outputs) {
      const Value& value = problem.graph->value(output);
      if (value.users.empty()) workspace_bytes += aligned(value.spec.bytes());
    }
  }

  void run(const KernelArgs& args) const override {
    // An op may use a value twice, and the loops write every output: unused ones go to scratch.
    std::array<Tensor, kMaxArguments> inputs, outputs;
    for (std::size_t i = 0; i < arguments_.size(); ++i) inputs[i] = args.inputs[arguments_[i]];
    std::byte* scratch = args.workspace;
    for (std::size_t i = 0; i < args.outputs.size(); ++i) {
      outputs[i] = args.outputs[i];
      if (outputs[i].data == nullptr) {
        outputs[i].data = scratch;
        outputs[i].strides = dense_strides(outputs[i].shape(), LayoutKind::plain);
        scratch += aligned(outputs[i].spec.bytes());
      }
    }
    op_def(kind_).reference({attributes_, std::span(inputs).first(arguments_.size()),
                             std::span(outputs).first(args.outputs.size()), *args.state});
  }

  static constexpr std::size_t kMaxArguments = 512;

 private:
  static std::size_t aligned(std::int64_t bytes) {
    return (static_cast<std::size_t>(bytes) + 63) / 64 * 64;
  }

  OpKind kind_;
  Attributes attributes_;
  std::vector<std::size_t> arguments_;
};

// Of an op that joins ranks; the loops know one that is alone.
int ranks_of(const Attributes& attributes) {
  if (const auto* reduce = std::get_if<AllReduceAttributes>(&attributes)) return reduce->ranks;
  if (const auto* merge = std::get_if<MergeStatisticsAttributes>(&attributes)) return merge->ranks;
  return 1;
}

std::string check(const Problem& problem) {
  if (ranks_of(problem.node().attributes) > 1) return "ranks are joined by mpi";
  if (problem.node().inputs.size() > ReferenceKernel::kMaxArguments) return "too many inputs";
  for (const ValueId output : problem.outputs) {
    const DType dtype = problem.graph->value(output).spec.dtype;
    const bool narrow = dtype == DType::bf16 || dtype == DType::f16;
    if (narrow && problem.node().kind != OpKind::cast) {
      return fmt::format("the reference computes in f32 and f64, not {}", name_of(dtype));
    }
  }
  return {};
}

std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  return std::make_unique<ReferenceKernel>(problem);
}

constexpr KernelRow kRow = {.name = "loops",
                            .match = [](const Graph&, NodeId first) { return std::vector{first}; },
                            .check = check,
                            .make = make};

std::span<const KernelRow> rows() { return {&kRow, 1}; }

}  // namespace

const Backend reference_backend = {
    .name = "reference",
    .device = "cpu",
    .unavailable = [] { return std::string(); },
    .version = [] { return std::string("1"); },
    .rows = rows,
    .make_reorder = [](const TensorSpec&, const Layout&,
                       const Layout&) { return std::unique_ptr<Kernel>(); },
    .plain = true,
    .usual_share = 0.003};

}  // namespace ridgeline
