// Optimizers over all parameters at once, and the guard that looks for overflows before them.

#include <fmt/core.h>

#include <array>

#include "backends/cuda/common.h"
#include "backends/cuda/rows.h"
#include "backends/cuda/training/optimizer_kernels.h"
#include "base/error.h"
#include "plan/patterns.h"

namespace ridgeline::cuda {
namespace {

// Tensors on their way to one launch.
template <typename Item, int room>
struct Batch {
  std::array<Item, static_cast<std::size_t>(room)> items;
  int count = 0;

  void add(const Item& item) { items[static_cast<std::size_t>(count++)] = item; }
  [[nodiscard]] bool full() const { return count == room; }
};
using TensorBatch = Batch<UpdatedTensor, kUpdatedTensors>;

void launch(const TensorBatch& tensors, const SgdAttributes& attributes, const KernelArgs& args) {
  const SgdSettings settings = {.momentum = static_cast<float>(attributes.momentum),
                                .weight_decay = static_cast<float>(attributes.weight_decay),
                                .nesterov = attributes.nesterov};
  launch_sgd(tensors.items.data(), tensors.count, settings, args.state, stream_of(args));
}

void launch(const TensorBatch& tensors, const AdamAttributes& attributes, const KernelArgs& args) {
  const AdamSettings settings = {.beta1 = attributes.beta1,
                                 .beta2 = attributes.beta2,
                                 .epsilon = attributes.epsilon,
                                 .weight_decay = attributes.weight_decay,
                                 .decoupled = attributes.decoupled};
  launch_adam(tensors.items.data(), tensors.count, settings, args.state, stream_of(args));
}

// Where one node's values stand among the kernel's arguments: parameter, gradient, state.
struct Place {
  std::vector<std::size_t> inputs, outputs;
};

// The updates of all nodes of the pattern.
template <typename OptimizerAttributes>
class Optimizer final : public Kernel {
 public:
  explicit Optimizer(const Problem& problem)
      : attributes_(std::get<OptimizerAttributes>(problem.node().attributes)) {
    for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
      const Node& node = problem.node(i);
      Place& place = places_.emplace_back();
      for (const ValueId id : node.inputs) place.inputs.push_back(problem.input_index(id));
      for (const ValueId id : node.outputs) place.outputs.push_back(problem.output_index(id));
    }
  }

  void run(const KernelArgs& args) const override {
    TensorBatch tensors;
    for (const Place& place : places_) {
      if (tensors.full()) {
        launch(tensors, attributes_, args);
        tensors.count = 0;
      }
      tensors.add(tensor_at(args, place));
    }
    launch(tensors, attributes_, args);
  }

 private:
  static UpdatedTensor tensor_at(const KernelArgs& args, const Place& place) {
    // Of the gradient there is no new version.
    const auto updated = [&](std::size_t input, std::size_t output) {
      const Tensor& former = args.inputs[place.inputs[input]];
      ensure(args.outputs[place.outputs[output]].data == former.data,
             "an optimizer updates its values where they lie");
      return former.as<float>();
    };
    const Tensor& gradient = args.inputs[place.inputs[1]];
    UpdatedTensor tensor;
    tensor.parameter = updated(0, 0);
    tensor.gradient = gradient.data;
    tensor.gradient_type = gradient.spec.dtype;
    tensor.elements = gradient.shape().elements();
    if (place.inputs.size() > 2) tensor.first = updated(2, 1);
    if (place.inputs.size() > 3) tensor.second = updated(3, 2);
    if (gradient.layout.kind() == LayoutKind::nhwc) {
      tensor.channels = gradient.shape()[1];
      tensor.pixels = gradient.shape()[2] * gradient.shape()[3];
    }
    return tensor;
  }

  OptimizerAttributes attributes_;
  std::vector<Place> places_;
};

class OverflowGuard final : public Kernel {
 public:
  explicit OverflowGuard(const OverflowGuardAttributes& attributes, std::size_t values)
      : settings_{attributes.growth, attributes.backoff, attributes.interval} {
    const std::size_t launches = (values + kGuardedValues - 1) / kGuardedValues;
    workspace_bytes = launches * kGuardFlags * sizeof(std::int32_t);
  }

  void run(const KernelArgs& args) const override {
    auto* const flags = reinterpret_cast<std::int32_t*>(args.workspace);
    int written = 0;
    Batch<GuardedValue, kGuardedValues> values;
    const auto look = [&] {
      written +=
          launch_find_overflow(values.items.data(), values.count, flags + written, stream_of(args));
      values.count = 0;
    };
    for (const Tensor& input : args.inputs) {
      if (values.full()) look();
      values.add({input.data, input.spec.dtype, input.shape().elements()});
    }
    if (values.count > 0) look();
    launch_note_overflow(flags, written, settings_, args.state, stream_of(args));
  }

 private:
  GuardSettings settings_;
};

// Values are counted in 31 bits, gradients apart they are f32.
std::string check_optimizer(const Problem& problem) {
  for (std::size_t i = 0; i < problem.nodes.size(); ++i) {
    const Node& node = problem.node(i);
    for (std::size_t j = 0; j < node.inputs.size(); ++j) {
      const TensorSpec& spec = problem.graph->value(node.inputs[j]).spec;
      if (j != 1 && spec.dtype != DType::f32) {
        return fmt::format("parameters and optimizer states are f32 here, not {}",
                           name_of(spec.dtype));
      }
      if (spec.shape.elements() >= std::int64_t{1} << 31) return "2^31 elements or more";
    }
  }
  return refuse_doubles(problem);
}

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

constexpr KernelRow kRows[] = {
    {"sgd_all", patterns::run_of_same<OpKind::sgd>, check_optimizer, make_optimizer<SgdAttributes>},
    {"adam_all", patterns::run_of_same<OpKind::adam>, check_optimizer,
     make_optimizer<AdamAttributes>},
    {"sgd", match_one<OpKind::sgd>, check_optimizer, make_optimizer<SgdAttributes>},
    {"adam", match_one<OpKind::adam>, check_optimizer, make_optimizer<AdamAttributes>},
    {"overflow_guard", match_one<OpKind::overflow_guard>, refuse_doubles, make_guard},
};

}  // namespace

std::span<const KernelRow> optimizer_rows() { return kRows; }

}  // namespace ridgeline::cuda
