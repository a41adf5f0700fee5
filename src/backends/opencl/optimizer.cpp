// Optimizers over all parameters at once, and the guard that looks for overflows before them.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "backends/opencl/rows.h"
#include "backends/opencl/sums.h"
#include "base/error.h"
#include "plan/patterns.h"

namespace ridgeline::opencl {
namespace {

// As in optimizer.cl: parameters of one launch.
constexpr std::size_t kMost = 12;
struct Updates {
  std::array<std::uint64_t, kMost> parameter{}, gradient{}, first{}, second{};
  std::array<std::int32_t, kMost> elements{}, channels{}, pixels{};
};

// The buffers that all parameters of one launch lie in.
struct Buffers {
  cl_mem parameter = nullptr, gradient = nullptr, first = nullptr, second = nullptr;
  bool half = false;  // gradients of 16 bits
  friend bool operator==(const Buffers&, const Buffers&) = default;
};

struct Batch {
  Buffers buffers;
  Updates updates;
  std::size_t count = 0;
};

constexpr const char* kFile = "kernels/optimizer.cl";

const Properties& properties_of(const KernelArgs& args) {
  return queue_of(args).context().properties();
}

Launch launch_of(const KernelArgs& args, const char* kernel, bool half) {
  const char* lanes = properties_of(args).cpu ? "-DLANES=16 " : "-DLANES=1 ";
  return {args, {kFile, kernel, lanes + number_option(half)}};
}

// A few work-items for each core of a CPU, which go through stretches; else neighbours read
// neighbouring elements.
void run_batch(const KernelArgs& args, Launch& launch, const Batch& batch) {
  const auto& elements = batch.updates.elements;
  const std::int64_t largest = *std::max_element(elements.begin(), elements.end());
  const auto count = static_cast<std::int64_t>(batch.count);
  if (properties_of(args).cpu) {
    launch.run({std::int64_t{4} * properties_of(args).compute_units, count}, {1, 1});
  } else {
    launch.run({std::min<std::int64_t>(largest, 16384), count}, {64, 1});
  }
}

void launch_batch(const KernelArgs& args, const Batch& batch, const SgdAttributes& a) {
  Launch launch = launch_of(args, "sgd", batch.buffers.half);
  launch.value(batch.buffers.parameter)
      .value(batch.buffers.gradient)
      .value(batch.buffers.first)
      .buffer(args.state)
      .value(batch.updates)
      .value(static_cast<float>(a.momentum))
      .value(static_cast<float>(a.weight_decay))
      .value(std::int32_t{a.nesterov});
  run_batch(args, launch, batch);
}

void launch_batch(const KernelArgs& args, const Batch& batch, const AdamAttributes& a) {
  Launch launch = launch_of(args, "adam", batch.buffers.half);
  launch.value(batch.buffers.parameter)
      .value(batch.buffers.gradient)
      .value(batch.buffers.first)
      .value(batch.buffers.second)
      .buffer(args.state)
      .value(batch.updates)
      .value(static_cast<float>(a.beta1))
      .value(static_cast<float>(a.beta2))
      .value(static_cast<float>(1 - a.beta1))
      .value(static_cast<float>(1 - a.beta2))
      .value(static_cast<float>(a.beta1 > 0 ? std::log(a.beta1) : 0))
      .value(static_cast<float>(a.beta2 > 0 ? std::log(a.beta2) : 0))
      .value(static_cast<float>(a.epsilon))
      .value(static_cast<float>(a.weight_decay))
      .value(std::int32_t{a.decoupled});
  run_batch(args, launch, batch);
}

template <typename OptimizerAttributes>
class Optimizer final : public Kernel {
 public:
  explicit Optimizer(const Problem& problem)
      : attributes_(std::get<OptimizerAttributes>(problem.node().attributes)) {
    for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
      std::vector<std::size_t>& inputs = inputs_.emplace_back();
      for (const ValueId id : problem.node(i).inputs) inputs.push_back(problem.input_index(id));
    }
  }

  // New versions lie where the former ones do.
  void run(const KernelArgs& args) const override {
    for (const bool half : {false, true}) update(args, half);
  }

 private:
  // Those whose gradients are of 16 bits, or the others.
  void update(const KernelArgs& args, bool half) const {
    Batch batch;
    for (const std::vector<std::size_t>& inputs : inputs_) {
      if ((args.inputs[inputs[1]].spec.dtype == DType::f16) != half) continue;
      const std::array<Place, 4> places = places_of(args, inputs);
      const Buffers buffers = {places[0].buffer, places[1].buffer, places[2].buffer,
                               places[3].buffer, half};
      if (batch.count == kMost || (batch.count > 0 && buffers != batch.buffers)) {
        launch_batch(args, batch, attributes_);
        batch = {};
      }
      batch.buffers = buffers;
      add(batch, places, args.inputs[inputs[1]]);
    }
    if (batch.count > 0) launch_batch(args, batch, attributes_);
  }

  static std::array<Place, 4> places_of(const KernelArgs& args,
                                        const std::vector<std::size_t>& inputs) {
    std::array<Place, 4> places{};
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      places[i] = queue_of(args).place(args.inputs[inputs[i]].data);
    }
    // A velocity that is not there is never read, but its argument must be a buffer.
    for (std::size_t i = inputs.size(); i < places.size(); ++i) places[i] = places[0];
    return places;
  }

  static void add(Batch& batch, const std::array<Place, 4>& places, const Tensor& gradient) {
    const std::size_t at = batch.count++;
    Updates& updates = batch.updates;
    updates.parameter[at] = places[0].offset;
    updates.gradient[at] = places[1].offset;
    updates.first[at] = places[2].offset;
    updates.second[at] = places[3].offset;
    const Shape& shape = gradient.shape();
    updates.elements[at] = static_cast<std::int32_t>(shape.elements());
    if (gradient.layout.kind() != LayoutKind::nhwc) return;
    updates.channels[at] = static_cast<std::int32_t>(shape[1]);
    updates.pixels[at] = static_cast<std::int32_t>(shape[2] * shape[3]);
  }

  OptimizerAttributes attributes_;
  std::vector<std::vector<std::size_t>> inputs_;  // parameter, gradient, state
};

class OverflowGuard final : public Kernel {
 public:
  OverflowGuard(const OverflowGuardAttributes& attributes, std::size_t values)
      : attributes_(attributes) {
    workspace_bytes = float_bytes(static_cast<std::int64_t>(values) * kFlags);
  }

  void run(const KernelArgs& args) const override {
    std::int64_t flags = 0;
    for (const Tensor& input : args.inputs) {
      const bool half = input.spec.dtype == DType::f16;
      Launch(args, {kFile, "find_overflow", "-DLANES=1 " + number_option(half)})
          .buffer(input.data)
          .buffer(args.workspace + flags * 4)
          .value(input.shape().elements())
          .run({kFlags}, {64});
      flags += kFlags;
    }
    Launch(args, {kFile, "note_overflow", "-DLANES=1"})
        .buffer(args.workspace)
        .buffer(args.state)
        .value(flags)
        .value(std::bit_cast<std::uint64_t>(attributes_.growth))
        .value(std::bit_cast<std::uint64_t>(attributes_.backoff))
        .value(attributes_.interval)
        .run({1}, {1});
  }

 private:
  static constexpr std::int64_t kFlags = 256;  // of each value
  OverflowGuardAttributes attributes_;
};

// A value as it lies: plain or nhwc.
Layout as_present(const TensorSpec& spec, const Layout& present) {
  const bool image = spec.shape.rank() == 4 && present.kind() == LayoutKind::nhwc;
  return image ? Layout::nhwc() : Layout::plain();
}

template <typename OptimizerAttributes>
std::unique_ptr<Kernel> make_optimizer(const Problem& problem, std::span<const Layout> layouts) {
  auto kernel = std::make_unique<Optimizer<OptimizerAttributes>>(problem);
  set_layouts(*kernel, problem, Layout::plain());
  for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
    const std::size_t gradient = problem.input_index(problem.node(i).inputs[1]);
    kernel->input_layouts[gradient] = as_present(problem.input(gradient), layouts[gradient]);
  }
  kernel->traits.in_place = true;
  return kernel;
}

std::unique_ptr<Kernel> make_guard(const Problem& problem, std::span<const Layout> layouts) {
  const Node& node = problem.node();
  auto kernel = std::make_unique<OverflowGuard>(std::get<OverflowGuardAttributes>(node.attributes),
                                                problem.inputs.size());
  set_layouts(*kernel, problem, Layout::plain());
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    const std::size_t input = problem.input_index(node.inputs[i]);
    const Layout layout = as_present(problem.input(input), layouts[input]);
    kernel->input_layouts[input] = layout;
    kernel->output_layouts[problem.output_index(node.outputs[i])] = layout;
  }
  kernel->traits.in_place = true;
  return kernel;
}

// Any rank: elements are counted, not placed.
std::string check_update(const Problem& problem) {
  for (const ValueId id : problem.inputs) {
    const TensorSpec& spec = problem.graph->value(id).spec;
    if (spec.dtype != DType::f32 && spec.dtype != DType::f16) {
      return "the kernels of OpenCL devices read f32 and f16";
    }
    if (spec.shape.elements() >= std::int64_t{1} << 31) return "2^31 elements or more";
  }
  return {};
}

constexpr KernelRow kRows[] = {
    {"sgd_all", patterns::run_of_same<OpKind::sgd>, check_update, make_optimizer<SgdAttributes>},
    {"adam_all", patterns::run_of_same<OpKind::adam>, check_update, make_optimizer<AdamAttributes>},
    {"sgd", match_one<OpKind::sgd>, check_update, make_optimizer<SgdAttributes>},
    {"adam", match_one<OpKind::adam>, check_update, make_optimizer<AdamAttributes>},
    {"overflow_guard", match_one<OpKind::overflow_guard>, check_update, make_guard},
};

}  // namespace

std::span<const KernelRow> optimizer_rows() { return kRows; }

}  // namespace ridgeline::opencl
