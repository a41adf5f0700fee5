#include <algorithm>
#include <cstring>

#include "backends/native/pool_geometry.h"
#include "backends/native/row_space.h"
#include "backends/native/rows.h"

namespace ridgeline::native {
namespace {

// Where dst's positions [begin, end) along an axis lie on src; src's position is dst's + shift.
struct Overlap {
  std::int64_t begin = 0, end = 0, shift = 0;
};

Overlap overlap_of(std::int64_t before, std::int64_t src, std::int64_t dst) {
  const std::int64_t begin = std::clamp<std::int64_t>(before, 0, dst);
  return {begin, std::clamp(before + src, begin, dst), -before};
}

class Pad final : public Kernel {
 public:
  explicit Pad(const PadAttributes& attributes) : attributes_(attributes) {}

  // Elements only move: one of two bytes is as good as a number.
  void run(const KernelArgs& args) const override {
    if (size_of(args.inputs[0].spec.dtype) == 2) {
      move<std::uint16_t>(args);
    } else {
      move<float>(args);
    }
  }

 private:
  template <typename T>
  void move(const KernelArgs& args) const {
    const Tensor src = as_image(args.inputs[0]), dst = as_image(args.outputs[0]);
    const Shape &from = src.shape(), &to = dst.shape();
    const Overlap channels = overlap_of(attributes_.channels_before, from[1], to[1]);
    const Overlap rows = overlap_of(attributes_.top, from[2], to[2]);
    const Overlap columns = overlap_of(attributes_.left, from[3], to[3]);
    const ImageView<const T> source(src);
    const ImageView<T> target(dst);
    const std::int64_t grain = std::max<std::int64_t>(1, 16384 / (to[1] * to[3]));
    parallel_for(to[0] * to[2], grain, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const std::int64_t n = row / to[2], h = row % to[2];
        const bool inside = h >= rows.begin && h < rows.end;
        for (std::int64_t w = 0; w < to[3]; ++w) {
          T* pixel = target.at(n, h, w);
          if (!inside || w < columns.begin || w >= columns.end) {
            std::fill_n(pixel, to[1], T{});
            continue;
          }
          const T* given = source.at(n, h + rows.shift, w + columns.shift);
          std::fill_n(pixel, channels.begin, T{});
          std::copy_n(given + channels.begin + channels.shift, channels.end - channels.begin,
                      pixel + channels.begin);
          std::fill_n(pixel + channels.end, to[1] - channels.end, T{});
        }
      }
    });
  }

  // Rows of features as images of one pixel.
  static Tensor as_image(const Tensor& tensor) {
    if (tensor.shape().rank() == 4) return tensor;
    Tensor image = tensor;
    image.spec.shape = {tensor.shape()[0], tensor.shape()[1], 1, 1};
    image.layout = Layout::nhwc();
    image.strides = {tensor.strides[0], 1, tensor.shape()[1], tensor.shape()[1]};
    return image;
  }

  PadAttributes attributes_;
};

std::unique_ptr<Kernel> make_pad(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<Pad>(std::get<PadAttributes>(problem.node().attributes));
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits = {.slices = true};
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"pad", match_one<OpKind::pad>, refuse_other_than_floats, make_pad},
};

}  // namespace

std::span<const KernelRow> pad_rows() { return kRows; }

}  // namespace ridgeline::native
