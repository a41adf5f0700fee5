// Layer norm and group norm, and their gradients.

#include <array>

#include "backends/opencl/rows.h"
#include "backends/opencl/sums.h"

namespace ridgeline::opencl {
namespace {

// What is normalised together: layer norm has one set for each pixel, group norm one for each group
// of a sample.
struct Sets {
  std::int64_t count, groups, channels, pixels;
};
Sets sets_of(const LayerNormAttributes& a, const Shape& shape) {
  const std::int64_t pixels = shape.height() * shape.width();
  if (a.groups == 0) return {shape[0] * pixels, 1, shape[1], 1};
  return {shape[0] * a.groups, a.groups, shape[1] / a.groups, pixels};
}

class LayerNorm final : public Kernel {
 public:
  explicit LayerNorm(const LayerNormAttributes& attributes) : attributes_(attributes) {}

  void run(const KernelArgs& args) const override {
    const Sets sets = sets_of(attributes_, args.inputs[0].shape());
    const Rows src = rows_of(args.inputs[0]);
    Launch(args, {"kernels/layer_norm.cl", "layer_norm", number_option(src)})
        .rows(src)
        .rows(rows_at(args.outputs, 0))
        .buffer(args.inputs[1].data)
        .buffer(args.inputs.back().data)
        .buffer(args.outputs[1].data)
        .buffer(args.outputs[2].data)
        .value(sets.count)
        .value(sets.groups)
        .value(sets.channels)
        .value(sets.pixels)
        .value(static_cast<float>(attributes_.epsilon))
        .run({sets.count}, {16});
  }

 private:
  LayerNormAttributes attributes_;
};

class LayerNormBackward final : public Kernel {
 public:
  explicit LayerNormBackward(const Problem& problem)
      : attributes_(std::get<LayerNormAttributes>(problem.node().attributes)) {
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs_[i] = problem.input_index(problem.node().inputs[i]);
    }
    const Shape& shape = problem.input(inputs_[1]).shape;
    workspace_bytes = sums_bytes(shape.elements() / shape[1], shape[1]);
  }

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data != nullptr) diff_src(args);
    if (args.outputs[1].data != nullptr || args.outputs[2].data != nullptr) sums(args);
  }

 private:
  [[nodiscard]] const Tensor& input(const KernelArgs& args, std::size_t i) const {
    return args.inputs[inputs_[i]];
  }

  void diff_src(const KernelArgs& args) const {
    const Sets sets = sets_of(attributes_, input(args, 1).shape());
    const Rows diff = rows_of(input(args, 0));
    Launch(args, {"kernels/layer_norm.cl", "layer_norm_backward", number_option(diff)})
        .rows(diff)
        .rows(rows_of(input(args, 1)))
        .rows(rows_of(args.outputs[0]))
        .buffer(input(args, 4).data)
        .buffer(input(args, 2).data)
        .buffer(input(args, 3).data)
        .value(sets.count)
        .value(sets.groups)
        .value(sets.channels)
        .value(sets.pixels)
        .run({sets.count}, {16});
  }

  void sums(const KernelArgs& args) const {
    const Sets sets = sets_of(attributes_, input(args, 1).shape());
    const Rows src = rows_of(input(args, 1));
    const Parts parts = parts_of(src.rows);
    const std::byte* products = args.workspace + float_bytes(parts.count * src.width);
    Launch(args, {"kernels/layer_norm.cl", "layer_norm_sums", number_option(src)})
        .rows(rows_of(input(args, 0)))
        .rows(src)
        .buffer(input(args, 2).data)
        .buffer(input(args, 3).data)
        .buffer(args.workspace)
        .buffer(products)
        .value(src.width)
        .value(src.rows)
        .value(parts.rows)
        .value(sets.groups)
        .value(sets.channels)
        .value(sets.pixels)
        .run({src.width, parts.count}, {16, 1});
    launch_finish(args, products, args.outputs[1].data, nullptr, src.width, parts.count, 1.0F);
    launch_finish(args, args.workspace, args.outputs[2].data, nullptr, src.width, parts.count,
                  1.0F);
  }

  LayerNormAttributes attributes_;
  std::array<std::size_t, 5> inputs_{};
};

std::unique_ptr<Kernel> make_forward(const Problem& problem, std::span<const Layout>) {
  auto kernel =
      std::make_unique<LayerNorm>(std::get<LayerNormAttributes>(problem.node().attributes));
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits.slices = true;
  return kernel;
}

std::unique_ptr<Kernel> make_backward(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<LayerNormBackward>(problem);
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits.slices = true;
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"layer_norm", match_one<OpKind::layer_norm>, check_channels, make_forward},
    {"layer_norm_backward", match_one<OpKind::layer_norm_backward>, check_channels, make_backward},
};

}  // namespace

std::span<const KernelRow> layer_norm_rows() { return kRows; }

}  // namespace ridgeline::opencl
