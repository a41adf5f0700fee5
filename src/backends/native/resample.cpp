#include <vector>

#include "backends/native/pool_geometry.h"
#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/simd_targets.h"
#include "ops/adaptive_pool.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/resample.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/lanes-inl.h"

#ifndef RIDGELINE_NATIVE_RESAMPLE_TYPES
#define RIDGELINE_NATIVE_RESAMPLE_TYPES
namespace ridgeline::native {
namespace {

// The pixels [begin, end) of src along an axis that one of dst sums up, and a factor for it.
struct Box {
  std::int64_t begin = 0, end = 0;
  float factor = 1.0F;
};

struct BoxAxis {
  std::vector<Box> boxes;      // one for each pixel of dst
  std::vector<float> factors;  // one for each pixel of src
};

// dst = sum over the box of src, with the factors of both; images in nhwc.
struct ResampleTask {
  DType dtype = DType::f32;
  ImageView<std::byte> src, dst;
  const BoxAxis *rows = nullptr, *columns = nullptr;
  std::int64_t channels = 0;
};

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

// A range of dst's rows of pixels.
template <typename T>
HWY_INLINE void sum_boxes_of(const ResampleTask& task, Range range) {
  const ImageView<const T> from = task.src.as<const T>();
  const ImageView<T> to = task.dst.as<T>();
  const hn::ScalableTag<float> d;
  const auto height = static_cast<std::int64_t>(task.rows->boxes.size());
  const auto width = static_cast<std::int64_t>(task.columns->boxes.size());
  const float* const row_factors = task.rows->factors.data();
  const float* const column_factors = task.columns->factors.data();
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const std::int64_t n = row / height;
    const Box& rows = task.rows->boxes[static_cast<std::size_t>(row % height)];
    for (std::int64_t x = 0; x < width; ++x) {
      const Box& columns = task.columns->boxes[static_cast<std::size_t>(x)];
      T* const dst = to.at(n, row % height, x);
      const auto factor = hn::Set(d, rows.factor * columns.factor);
      for_lanes(d, task.channels, [&](auto lanes, std::int64_t c) HWY_ATTR {
        auto sum = hn::Zero(d);
        for (std::int64_t h = rows.begin; h < rows.end; ++h) {
          for (std::int64_t w = columns.begin; w < columns.end; ++w) {
            const auto own = hn::Set(d, row_factors[h] * column_factors[w]);
            sum = hn::MulAdd(lanes.load(from.at(n, h, w) + c), own, sum);
          }
        }
        lanes.store(hn::Mul(sum, factor), dst + c);
      });
    }
  }
}

void sum_boxes(const ResampleTask& task, Range range) {
  with_element(task.dtype,
               [&](auto element) HWY_ATTR { sum_boxes_of<decltype(element)>(task, range); });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(sum_boxes);

std::vector<float> ones(std::int64_t count) {
  return std::vector<float>(static_cast<std::size_t>(count), 1.0F);
}

float share(const AdaptiveWindow& window) { return 1.0F / static_cast<float>(window.size()); }

BoxAxis nearest(std::int64_t src, std::int64_t dst) {
  BoxAxis axis{{}, ones(src)};
  for (std::int64_t i = 0; i < dst; ++i) {
    axis.boxes.push_back({i * src / dst, i * src / dst + 1});
  }
  return axis;
}

// The gradient of `nearest` from src to dst pixels: each pixel of src collects those it served.
BoxAxis nearest_backward(std::int64_t src, std::int64_t dst) {
  BoxAxis axis{{}, ones(dst)};
  const auto first = [&](std::int64_t i) { return (i * dst + src - 1) / src; };
  for (std::int64_t i = 0; i < src; ++i) axis.boxes.push_back({first(i), first(i + 1)});
  return axis;
}

BoxAxis averages(std::int64_t src, std::int64_t dst) {
  BoxAxis axis{{}, ones(src)};
  for (std::int64_t i = 0; i < dst; ++i) {
    const AdaptiveWindow window = adaptive_window(i, src, dst);
    axis.boxes.push_back({window.begin, window.end, share(window)});
  }
  return axis;
}

BoxAxis averages_backward(std::int64_t src, std::int64_t dst) {
  BoxAxis axis;
  for (std::int64_t i = 0; i < dst; ++i) {
    axis.factors.push_back(share(adaptive_window(i, src, dst)));
  }
  for (std::int64_t i = 0; i < src; ++i) {
    const AdaptiveWindow windows = adaptive_windows_of(i, src, dst);
    axis.boxes.push_back({windows.begin, windows.end});
  }
  return axis;
}

class Resample final : public Kernel {
 public:
  Resample(BoxAxis rows, BoxAxis columns) : rows_(std::move(rows)), columns_(std::move(columns)) {}

  void run(const KernelArgs& args) const override {
    const Shape& shape = args.outputs[0].shape();
    ResampleTask task;
    task.dtype = args.inputs[0].spec.dtype;
    task.src = ImageView<std::byte>(args.inputs[0]);
    task.dst = ImageView<std::byte>(args.outputs[0]);
    task.rows = &rows_;
    task.columns = &columns_;
    task.channels = shape[1];
    const std::int64_t grain = std::max<std::int64_t>(1, 16384 / (shape[1] * shape[3]));
    parallel_for(shape[0] * shape[2], grain, [&](std::int64_t begin, std::int64_t end) {
      HWY_DYNAMIC_DISPATCH(sum_boxes)(task, {begin, end});
    });
  }

 private:
  BoxAxis rows_, columns_;
};

using MakeAxis = BoxAxis (*)(std::int64_t src, std::int64_t dst);

// `kBackward`: the kernel's output is src of the op whose gradient it computes.
template <MakeAxis axis, bool kBackward>
std::unique_ptr<Kernel> make_resample(const Problem& problem, std::span<const Layout>) {
  const Shape& src = kBackward ? problem.output(0).shape : problem.input(0).shape;
  const Shape& dst = kBackward ? problem.input(0).shape : problem.output(0).shape;
  auto kernel = std::make_unique<Resample>(axis(src[2], dst[2]), axis(src[3], dst[3]));
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits = {.slices = true};
  return kernel;
}

std::string check_adaptive(const Problem& problem) {
  if (std::get<PoolAttributes>(problem.node().attributes).kind != PoolKind::adaptive_average) {
    return "not an adaptive pool";
  }
  return refuse_other_than_floats(problem);
}

constexpr KernelRow kRows[] = {
    {"adaptive_pool", match_one<OpKind::pool>, check_adaptive, make_resample<averages, false>},
    {"adaptive_pool_backward", match_one<OpKind::pool_backward>, check_adaptive,
     make_resample<averages_backward, true>},
    {"resize", match_one<OpKind::resize>, refuse_other_than_floats, make_resample<nearest, false>},
    {"resize_backward", match_one<OpKind::resize_backward>, refuse_other_than_floats,
     make_resample<nearest_backward, true>},
};

}  // namespace

std::span<const KernelRow> resample_rows() { return kRows; }

}  // namespace ridgeline::native
#endif
