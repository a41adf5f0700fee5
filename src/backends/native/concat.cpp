#include "backends/native/reorder.h"
#include "backends/native/row_space.h"
#include "backends/native/rows.h"

namespace ridgeline::native {
namespace {

// Channels [begin, begin + channels) of a tensor.
Tensor channels_of(const Tensor& tensor, std::int64_t begin, std::int64_t channels) {
  Tensor slice = tensor;
  const auto element = static_cast<std::int64_t>(size_of(tensor.spec.dtype));
  slice.data += begin * tensor.strides[1] * element;
  slice.spec.shape = {tensor.shape()[0], channels};
  for (int axis = 2; axis < tensor.shape().rank(); ++axis) {
    slice.spec.shape.append(tensor.shape()[axis]);
  }
  return slice;
}

class Concat final : public Kernel {
 public:
  explicit Concat(std::vector<std::size_t> inputs) : inputs_(std::move(inputs)) {}

  void run(const KernelArgs& args) const override {
    std::int64_t begin = 0;
    for (const std::size_t input : inputs_) {
      const Tensor& src = args.inputs[input];
      copy_tensor(src, channels_of(args.outputs[0], begin, src.shape()[1]));
      begin += src.shape()[1];
    }
  }

 private:
  std::vector<std::size_t> inputs_;  // an input may come twice
};

class Slice final : public Kernel {
 public:
  explicit Slice(const SliceAttributes& attributes) : attributes_(attributes) {}

  void run(const KernelArgs& args) const override {
    copy_tensor(channels_of(args.inputs[0], attributes_.begin, attributes_.channels),
                args.outputs[0]);
  }

 private:
  SliceAttributes attributes_;
};

class Split final : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    std::int64_t begin = 0;
    for (const Tensor& part : args.outputs) {
      const std::int64_t channels = part.shape()[1];
      if (part.data != nullptr) copy_tensor(channels_of(args.inputs[0], begin, channels), part);
      begin += channels;
    }
  }
};

// A tensor of rank other than 4 under the shape of an image. It is dense where samples do not stay
// samples.
Tensor as_image(const Tensor& tensor, const Shape& image) {
  Tensor result = tensor;
  result.spec.shape = image;
  result.layout = Layout::plain();
  result.strides = dense_strides(image, LayoutKind::plain);
  if (tensor.shape()[0] == image[0]) result.strides[0] = rows_of(tensor).stride;
  return result;
}

class Reshape final : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    Tensor src = args.inputs[0], dst = args.outputs[0];
    if (src.shape().rank() == 4 && dst.shape().rank() != 4) dst = as_image(dst, src.shape());
    if (src.shape().rank() != 4 && dst.shape().rank() == 4) src = as_image(src, dst.shape());
    dst.spec.shape = src.spec.shape;
    copy_tensor(src, dst);
  }
};

// Inputs may lie in any layout but a provider's own.
std::vector<Layout> layouts_as_they_are(const Problem& problem, std::span<const Layout> layouts) {
  std::vector<Layout> kept(layouts.begin(), layouts.end());
  for (std::size_t i = 0; i < kept.size(); ++i) {
    if (problem.input(i).shape.rank() != 4) {
      kept[i] = Layout::plain();
    } else if (kept[i].kind() == LayoutKind::own) {
      kept[i] = Layout::nhwc();
    }
  }
  return kept;
}

std::unique_ptr<Kernel> make_concat(const Problem& problem, std::span<const Layout> layouts) {
  auto kernel = std::make_unique<Concat>(places_of(problem));
  set_layouts(*kernel, problem, common_layout(problem, layouts));
  kernel->input_layouts = layouts_as_they_are(problem, layouts);
  kernel->traits = {.slices = true};
  return kernel;
}

std::unique_ptr<Kernel> make_slice(const Problem& problem, std::span<const Layout> layouts) {
  auto kernel = std::make_unique<Slice>(std::get<SliceAttributes>(problem.node().attributes));
  set_layouts(*kernel, problem, common_layout(problem, layouts));
  kernel->input_layouts = layouts_as_they_are(problem, layouts);
  kernel->traits = {.slices = true};
  return kernel;
}

// nhwc, in which parts may be views.
std::unique_ptr<Kernel> make_split(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<Split>();
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits = {.slices = true};
  return kernel;
}

// Flattening images and its gradient read and write nhwc directly when samples stay samples. Other
// changes of shape mean something in plain order only.
std::unique_ptr<Kernel> make_reshape(const Problem& problem, std::span<const Layout> layouts) {
  const Shape &src = problem.input(0).shape, &dst = problem.output(0).shape;
  auto kernel = std::make_unique<Reshape>();
  const bool samples_stay = src.rank() > 0 && dst.rank() > 0 && src[0] == dst[0];
  if (samples_stay && (src.rank() == 4) != (dst.rank() == 4)) {
    set_layouts(*kernel, problem, Layout::nhwc());
    kernel->input_layouts = layouts_as_they_are(problem, layouts);
    kernel->traits = {.slices = true};
  } else {
    set_layouts(*kernel, problem, Layout::plain());
  }
  return kernel;
}

std::string check_any(const Problem&) { return {}; }

constexpr KernelRow kRows[] = {
    {"concat", match_one<OpKind::concat>, check_any, make_concat},
    {"slice", match_one<OpKind::slice>, check_any, make_slice},
    {"split", match_one<OpKind::split>, check_any, make_split},
    {"reshape", match_one<OpKind::reshape>, check_any, make_reshape},
};

}  // namespace

std::span<const KernelRow> concat_rows() { return kRows; }

}  // namespace ridgeline::native
