// Ops that put elements elsewhere: concat, slice, split, shuffle, pad, resize with its gradient,
// and copies between layouts and types; and the batch's pixels, which become the first image.

#include <algorithm>
#include <array>

#include "backends/opencl/common.h"
#include "backends/opencl/rows.h"
#include "base/error.h"

namespace ridgeline::opencl {
namespace {

Size group_of(std::int64_t width) { return width >= 64 ? Size{64, 1} : Size{8, 8}; }

void copy_rows(const KernelArgs& args, const Rows& src, const Rows& dst, std::size_t bytes) {
  const char* kernel = bytes == 4 ? "copy4" : bytes == 2 ? "copy2" : "copy1";
  Launch(args, {"kernels/move.cl", kernel})
      .rows(src)
      .rows(dst)
      .value(dst.width)
      .value(dst.rows)
      .run({dst.width, dst.rows}, group_of(dst.width));
}

// The channels of rows from one on.
Rows behind(Rows rows, std::int64_t channel, std::size_t bytes) {
  rows.data = static_cast<const std::byte*>(rows.data) + channel * static_cast<std::int64_t>(bytes);
  return rows;
}

class Concat final : public Kernel {
 public:
  explicit Concat(std::vector<std::size_t> inputs) : inputs_(std::move(inputs)) {}

  void run(const KernelArgs& args) const override {
    if (args.outputs[0].data == nullptr) return;
    const std::size_t bytes = size_of(args.outputs[0].spec.dtype);
    std::int64_t channel = 0;
    for (const std::size_t input : inputs_) {
      const Rows from = rows_of(args.inputs[input]);
      Rows to = behind(rows_of(args.outputs[0]), channel, bytes);
      to.width = from.width;
      copy_rows(args, from, to, bytes);
      channel += from.width;
    }
  }

 private:
  std::vector<std::size_t> inputs_;  // an input may come twice
};

// The same elements, in the same order, of another shape.
class Reshape final : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    const Tensor& dst = args.outputs[0];
    if (dst.data == nullptr) return;
    const std::int64_t count = dst.shape().elements();
    copy_rows(args, {args.inputs[0].data, 1, count, count}, {dst.data, 1, count, count},
              size_of(dst.spec.dtype));
  }
};

// Both cut channels out of src, from `begin` on.
class Split final : public Kernel {
 public:
  explicit Split(std::int64_t begin) : begin_(begin) {}

  void run(const KernelArgs& args) const override {
    const std::size_t bytes = size_of(args.inputs[0].spec.dtype);
    std::int64_t channel = begin_;
    for (const Tensor& part : args.outputs) {
      if (part.data != nullptr) {
        copy_rows(args, behind(rows_of(args.inputs[0]), channel, bytes), rows_of(part), bytes);
      }
      channel += part.shape()[1];
    }
  }

 private:
  std::int64_t begin_;
};

// Strides of samples, channels and pixels.
struct Strides3 {
  std::int64_t sample, channel, pixel;
};
Strides3 strides_of(const Tensor& tensor) {
  const int rank = tensor.shape().rank();
  return {rank > 0 ? tensor.strides[0] : 1, rank > 1 ? tensor.strides[1] : 1,
          rank == 4 ? tensor.strides[3] : 1};
}

class Reorder final : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    const Tensor &src = args.inputs[0], &dst = args.outputs[0];
    if (dst.data == nullptr) return;
    const Shape& shape = src.shape();
    const std::int64_t samples = shape.rank() > 0 ? shape[0] : 1;
    const std::int64_t channels = shape.rank() > 1 ? shape[1] : 1;
    const std::int64_t pixels = shape.rank() == 4 ? shape[2] * shape[3] : 1;
    Launch(args, {"kernels/move.cl", "reorder"})
        .buffer(src.data)
        .buffer(dst.data)
        .value(strides_of(src))
        .value(strides_of(dst))
        .value(channels)
        .value(pixels)
        .value(static_cast<std::int32_t>(size_of(src.spec.dtype)))
        .run({pixels, channels, samples}, {8, 8, 1});
  }
};

class ShuffleKernel final : public Kernel {
 public:
  explicit ShuffleKernel(std::int64_t groups) : groups_(groups) {}

  void run(const KernelArgs& args) const override {
    const Rows src = rows_of(args.inputs[0]), dst = rows_of(args.outputs[0]);
    Launch(args, {"kernels/move.cl", "shuffle_channels", number_option(src)})
        .rows(src)
        .rows(dst)
        .value(src.width)
        .value(src.rows)
        .value(groups_)
        .run({src.width, src.rows}, group_of(src.width));
  }

 private:
  std::int64_t groups_;
};

class Cast final : public Kernel {
 public:
  explicit Cast(bool plain) : plain_(plain) {}

  void run(const KernelArgs& args) const override {
    const Rows src = rows(args.inputs[0]), dst = rows(args.outputs[0]);
    if (src.half == dst.half) {
      copy_rows(args, src, dst, size_of(args.inputs[0].spec.dtype));
      return;
    }
    Launch(args, {"kernels/move.cl", "cast", src.half ? "-DHALF -DWIDEN" : "-DHALF"})
        .rows(src)
        .rows(dst)
        .value(dst.width)
        .value(dst.rows)
        .run({dst.width, dst.rows}, group_of(dst.width));
  }

 private:
  [[nodiscard]] Rows rows(const Tensor& tensor) const {
    Rows rows = rows_of(tensor);
    if (!plain_) return rows;
    rows.width = rows.stride = tensor.shape().elements();
    rows.rows = 1;
    return rows;
  }

  bool plain_;  // without gaps, whatever the rank
};

// As in move.cl.
struct Images {
  std::int32_t src_h, src_w, src_c, dst_h, dst_w, dst_c;
  std::int32_t top, left, before;
};

class MoveImages final : public Kernel {
 public:
  MoveImages(const char* kernel, const PadAttributes& pad) : kernel_(kernel), pad_(pad) {}

  void run(const KernelArgs& args) const override {
    const Rows src = rows_of(args.inputs[0]), dst = rows_of(args.outputs[0]);
    const Shape &from = args.inputs[0].shape(), &to = args.outputs[0].shape();
    const auto number = [](std::int64_t n) { return static_cast<std::int32_t>(n); };
    const Images images = {
        number(from.height()), number(from.width()), number(from[1]),
        number(to.height()),   number(to.width()),   number(to[1]),
        number(pad_.top),      number(pad_.left),    number(pad_.channels_before)};
    Launch(args, {"kernels/move.cl", kernel_, number_option(src)})
        .rows(src)
        .rows(dst)
        .value(images)
        .value(dst.rows)
        .run({dst.width, dst.rows}, group_of(dst.width));
  }

 private:
  const char* kernel_;
  PadAttributes pad_;
};

class Normalize final : public Kernel {
 public:
  explicit Normalize(NormalizeAttributes attributes) : attributes_(std::move(attributes)) {}

  void run(const KernelArgs& args) const override {
    const Tensor &src = args.inputs[0], &dst = args.outputs[0];
    if (dst.data == nullptr) return;
    const Shape& shape = dst.shape();
    const std::int64_t pixels = shape[2] * shape[3];
    for (std::int64_t first = 0; first < shape[1]; first += kChannels) {
      Channels each{};
      const std::int64_t count = std::min<std::int64_t>(shape[1] - first, kChannels);
      for (std::int64_t c = 0; c < count; ++c) {
        const auto channel = static_cast<std::size_t>(first + c), at = static_cast<std::size_t>(c);
        each.mean[at] = static_cast<float>(attributes_.mean[channel]);
        each.deviation[at] = static_cast<float>(attributes_.deviation[channel]);
      }
      Launch(args, {"kernels/normalize.cl", "normalize_pixels", number_option(rows_of(dst))})
          .buffer(src.data + first * src.strides[1])
          .rows(behind(rows_of(dst), first, size_of(dst.spec.dtype)))
          .buffer(attributes_.flip ? args.inputs[1].data : nullptr)
          .buffer(args.state)
          .value(each)
          .value(static_cast<std::int32_t>(count))
          .value(pixels)
          .value(shape[3])
          .value(src.strides[0])
          .run({pixels, shape[0]}, {64, 1});
    }
  }

 private:
  // Of one launch, as in normalize.cl.
  static constexpr std::int64_t kChannels = 8;
  struct Channels {
    std::array<float, kChannels> mean, deviation;
  };
  NormalizeAttributes attributes_;
};

std::unique_ptr<Kernel> with_layouts(std::unique_ptr<Kernel> kernel, const Problem& problem) {
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits.slices = true;
  return kernel;
}

std::unique_ptr<Kernel> make_concat(const Problem& problem, std::span<const Layout>) {
  std::vector<std::size_t> inputs;
  for (const ValueId input : problem.node().inputs) inputs.push_back(problem.input_index(input));
  return with_layouts(std::make_unique<Concat>(std::move(inputs)), problem);
}

std::unique_ptr<Kernel> make_reshape(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<Reshape>();
  set_layouts(*kernel, problem, Layout::plain());
  return kernel;
}

std::unique_ptr<Kernel> make_split(const Problem& problem, std::span<const Layout>) {
  const auto* slice = std::get_if<SliceAttributes>(&problem.node().attributes);
  return with_layouts(std::make_unique<Split>(slice == nullptr ? 0 : slice->begin), problem);
}

std::unique_ptr<Kernel> make_shuffle(const Problem& problem, std::span<const Layout>) {
  const auto& attributes = std::get<ShuffleAttributes>(problem.node().attributes);
  return with_layouts(std::make_unique<ShuffleKernel>(attributes.groups), problem);
}

std::unique_ptr<Kernel> make_move(const Problem& problem, std::span<const Layout>) {
  const OpKind kind = problem.node().kind;
  const char* name = kind == OpKind::pad      ? "pad"
                     : kind == OpKind::resize ? "resize"
                                              : "resize_backward";
  const auto* pad = std::get_if<PadAttributes>(&problem.node().attributes);
  return with_layouts(std::make_unique<MoveImages>(name, pad == nullptr ? PadAttributes{} : *pad),
                      problem);
}

// Parameters lie plain, images nhwc.
std::unique_ptr<Kernel> make_cast(const Problem& problem, std::span<const Layout>) {
  const bool plain = problem.graph->value(problem.inputs[0]).role == Role::parameter;
  auto kernel = std::make_unique<Cast>(plain);
  set_layouts(*kernel, problem, plain ? Layout::plain() : Layout::nhwc());
  kernel->traits.slices = !plain;
  return kernel;
}

std::unique_ptr<Kernel> make_normalize(const Problem& problem, std::span<const Layout>) {
  auto kernel =
      std::make_unique<Normalize>(std::get<NormalizeAttributes>(problem.node().attributes));
  kernel->input_layouts.assign(problem.inputs.size(), Layout::plain());
  kernel->output_layouts = {Layout::nhwc()};
  kernel->traits.slices = true;
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"concat", match_one<OpKind::concat>, check_channels, make_concat},
    {"reshape", match_one<OpKind::reshape>, check_elements, make_reshape},
    {"slice", match_one<OpKind::slice>, check_channels, make_split},
    {"split", match_one<OpKind::split>, check_channels, make_split},
    {"shuffle", match_one<OpKind::shuffle>, check_channels, make_shuffle},
    {"pad", match_one<OpKind::pad>, check_channels, make_move},
    {"resize", match_one<OpKind::resize>, check_channels, make_move},
    {"resize_backward", match_one<OpKind::resize_backward>, check_channels, make_move},
    {"cast", match_one<OpKind::cast>, check_elements, make_cast},
    {"normalize", match_one<OpKind::normalize>, check_elements, make_normalize},
};

}  // namespace

std::span<const KernelRow> move_rows() { return kRows; }

std::unique_ptr<Kernel> make_reorder(const TensorSpec& spec, const Layout& from, const Layout& to) {
  const std::size_t bytes = size_of(spec.dtype);
  const bool own = from.kind() == LayoutKind::own || to.kind() == LayoutKind::own;
  if (own || spec.shape.rank() == 3 || (bytes != 4 && bytes != 2 && bytes != 1)) return nullptr;
  auto kernel = std::make_unique<Reorder>();
  kernel->input_layouts = {from};
  kernel->output_layouts = {to};
  kernel->traits.slices = true;
  return kernel;
}

}  // namespace ridgeline::opencl
