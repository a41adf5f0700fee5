// Concatenation and its counterparts where the planner could not make views of them, and copies
// between layouts.

#include <algorithm>
#include <array>

#include "backends/cuda/common.h"
#include "backends/cuda/elementwise/copy_kernels.h"
#include "backends/cuda/rows.h"
#include "base/error.h"

namespace ridgeline::cuda {
namespace {

std::byte* channel_at(const Rows& rows, std::int64_t channel, int element_bytes) {
  return static_cast<std::byte*>(rows.data) + channel * element_bytes;
}

int element_bytes_of(const Tensor& tensor) { return static_cast<int>(size_of(tensor.spec.dtype)); }

// Starts copies of as many pieces as one launch takes.
class Pieces {
 public:
  Pieces(int element_bytes, Stream stream) : element_bytes_(element_bytes), stream_(stream) {}

  // REQUIRES: as many rows and channels in both.
  void add(const Rows& from, const Rows& to) {
    if (count_ == kCopyPieces) flush();
    pieces_[static_cast<std::size_t>(count_++)] = {.src = from.data,
                                                   .dst = to.data,
                                                   .rows = from.rows,
                                                   .width = from.width,
                                                   .src_stride = from.stride,
                                                   .dst_stride = to.stride};
  }
  void flush() {
    launch_copy(pieces_.data(), count_, element_bytes_, stream_);
    count_ = 0;
  }
  // The channels of rows from one on.
  [[nodiscard]] Rows behind(Rows rows, std::int64_t channel) const {
    rows.data = channel_at(rows, channel, element_bytes_);
    return rows;
  }

 private:
  std::array<CopyPiece, kCopyPieces> pieces_;
  int count_ = 0, element_bytes_;
  Stream stream_;
};

class Concat final : public Kernel {
 public:
  explicit Concat(std::vector<std::size_t> inputs) : inputs_(std::move(inputs)) {}

  void run(const KernelArgs& args) const override {
    const Tensor& dst = args.outputs[0];
    if (dst.data == nullptr) return;
    const Rows to = rows_of(dst);
    Pieces pieces(element_bytes_of(dst), stream_of(args));
    std::int64_t channel = 0;
    for (const std::size_t input : inputs_) {
      const Rows from = rows_of(args.inputs[input]);
      pieces.add(from, pieces.behind(to, channel));
      channel += from.width;
    }
    pieces.flush();
  }

 private:
  std::vector<std::size_t> inputs_;  // an input may come twice
};

class Split final : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    const Rows from = rows_of(args.inputs[0]);
    Pieces pieces(element_bytes_of(args.inputs[0]), stream_of(args));
    std::int64_t channel = 0;
    for (const Tensor& part : args.outputs) {
      const std::int64_t channels = part.shape()[1];
      if (part.data != nullptr) {
        Rows piece = pieces.behind(from, channel);
        piece.width = channels;
        pieces.add(piece, rows_of(part));
      }
      channel += channels;
    }
    pieces.flush();
  }
};

class Slice final : public Kernel {
 public:
  explicit Slice(std::int64_t begin) : begin_(begin) {}

  void run(const KernelArgs& args) const override {
    const Tensor& dst = args.outputs[0];
    if (dst.data == nullptr) return;
    const Rows from = rows_of(args.inputs[0]), to = rows_of(dst);
    const int element_bytes = element_bytes_of(dst);
    const CopyPiece piece = {.src = channel_at(from, begin_, element_bytes),
                             .dst = to.data,
                             .rows = to.rows,
                             .width = to.width,
                             .src_stride = from.stride,
                             .dst_stride = to.stride};
    launch_copy(&piece, 1, element_bytes, stream_of(args));
  }

 private:
  std::int64_t begin_;
};

// Samples as rows; for nhwc, pixels.
Rows any_rows(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  if (shape.rank() < 4 || tensor.layout.kind() == LayoutKind::nhwc) return rows_of(tensor);
  return {tensor.data, shape[0], shape[1] * shape[2] * shape[3], tensor.strides[0]};
}

class Reorder final : public Kernel {
 public:
  void run(const KernelArgs& args) const override {
    const Tensor &src = args.inputs[0], &dst = args.outputs[0];
    if (dst.data == nullptr) return;
    if (src.layout == dst.layout) return copy(src, dst, stream_of(args));
    const bool to_nhwc = dst.layout.kind() == LayoutKind::nhwc;
    const Shape& shape = src.shape();
    launch_transpose({.src = src.data,
                      .dst = dst.data,
                      .element_bytes = element_bytes_of(src),
                      .to_nhwc = to_nhwc,
                      .samples = shape[0],
                      .channels = shape[1],
                      .pixels = shape[2] * shape[3],
                      .plain_sample_stride = (to_nhwc ? src : dst).strides[0],
                      .nhwc_pixel_stride = (to_nhwc ? dst : src).strides[3]},
                     stream_of(args));
  }

 private:
  static void copy(const Tensor& src, const Tensor& dst, Stream stream) {
    const Rows from = any_rows(src), to = any_rows(dst);
    const CopyPiece piece = {.src = from.data,
                             .dst = to.data,
                             .rows = from.rows,
                             .width = from.width,
                             .src_stride = from.stride,
                             .dst_stride = to.stride};
    launch_copy(&piece, 1, element_bytes_of(src), stream);
  }
};

std::string check_copy(const Problem& problem) {
  if (problem.output(0).shape.rank() == 3) return "rows or images are copied, not rank 3";
  return {};
}

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

std::unique_ptr<Kernel> make_split(const Problem& problem, std::span<const Layout>) {
  return with_layouts(std::make_unique<Split>(), problem);
}

std::unique_ptr<Kernel> make_slice(const Problem& problem, std::span<const Layout>) {
  const auto& attributes = std::get<SliceAttributes>(problem.node().attributes);
  return with_layouts(std::make_unique<Slice>(attributes.begin), problem);
}

constexpr KernelRow kRows[] = {
    {"concat", match_one<OpKind::concat>, check_copy, make_concat},
    {"slice", match_one<OpKind::slice>, check_copy, make_slice},
    {"split", match_one<OpKind::split>, check_copy, make_split},
};

}  // namespace

std::span<const KernelRow> copy_rows() { return kRows; }

std::unique_ptr<Kernel> make_reorder(const TensorSpec& spec, const Layout& from, const Layout& to) {
  if (from.kind() == LayoutKind::own || to.kind() == LayoutKind::own) return nullptr;
  const bool image = from.kind() == LayoutKind::nhwc || to.kind() == LayoutKind::nhwc;
  ensure(!image || spec.shape.rank() == 4, "a value of shape {} has no layout nhwc",
         spec.shape.text());
  auto kernel = std::make_unique<Reorder>();
  kernel->input_layouts = {from};
  kernel->output_layouts = {to};
  kernel->traits.slices = true;
  return kernel;
}

}  // namespace ridgeline::cuda
