#include <algorithm>

#include "backends/native/pool_geometry.h"
#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/pool.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/lanes-inl.h"

#ifndef RIDGELINE_NATIVE_POOL_TYPES
#define RIDGELINE_NATIVE_POOL_TYPES
namespace ridgeline::native {
namespace {

// Views of images count in elements of their own type.
struct PoolTask {
  DType dtype = DType::f32;
  std::int64_t channels = 0;
  PoolAxis rows, columns;
  const WindowTaps* row_taps = nullptr;
  const WindowTaps* column_taps = nullptr;
  ImageView<std::byte> src, dst;
  ImageView<std::uint8_t> positions;  // one of the two, or neither
  ImageView<std::int32_t> wide_positions;
};

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

// One window: the taps on the image, the element under the first of them and where results go.
template <typename T>
struct Window {
  std::int64_t first_row, rows, first_column, columns;  // taps
  std::int64_t divisor;
  const T* src;
  std::int64_t row_step, column_step;
  T* dst;
  std::uint8_t* positions;
  std::int32_t* wide_positions;
};

// The first of equals wins; a NaN beats everything and stays. Positions are small whole numbers,
// kept as floats beside the maxima.
template <typename T, class D, class Lanes>
HWY_INLINE void max_of_any(D d, Lanes lanes, std::int64_t kernel_columns, const Window<T>& w,
                           std::int64_t c) {
  const std::int64_t first = w.first_row * kernel_columns + w.first_column;
  auto best = lanes.load(w.src + c);
  auto position = hn::Set(d, static_cast<float>(first));
  for (std::int64_t row = 0; row < w.rows; ++row) {
    for (std::int64_t column = row == 0 ? 1 : 0; column < w.columns; ++column) {
      const auto x = lanes.load(w.src + row * w.row_step + column * w.column_step + c);
      const auto here = static_cast<float>(first + row * kernel_columns + column);
      const auto wins = hn::Or(hn::Gt(x, best), hn::IsNaN(x));
      best = hn::IfThenElse(wins, x, best);
      position = hn::IfThenElse(wins, hn::Set(d, here), position);
    }
  }
  lanes.store(best, w.dst + c);
  const auto number = hn::ConvertTo(hn::RebindToSigned<D>(), position);
  if (w.positions != nullptr) {
    lanes.store(hn::DemoteTo(hn::Rebind<std::uint8_t, D>(), number), w.positions + c);
  } else if (w.wide_positions != nullptr) {
    lanes.store(number, w.wide_positions + c);
  }
}

// The same for a whole window of kSize by kSize.
template <int kSize, bool kPositions, typename T, class D, class Lanes>
HWY_INLINE void max_of_square(D d, Lanes lanes, const Window<T>& w, std::int64_t c) {
  auto best = lanes.load(w.src + c);
  auto position = hn::Zero(d);
#pragma GCC unroll 9
  for (int tap = 1; tap < kSize * kSize; ++tap) {
    const std::int64_t row = tap / kSize, column = tap % kSize;
    const auto x = lanes.load(w.src + row * w.row_step + column * w.column_step + c);
    const auto wins = hn::Or(hn::Gt(x, best), hn::IsNaN(x));
    best = hn::IfThenElse(wins, x, best);
    if constexpr (kPositions) {
      position = hn::IfThenElse(wins, hn::Set(d, static_cast<float>(tap)), position);
    }
  }
  lanes.store(best, w.dst + c);
  if constexpr (kPositions) {
    const auto number = hn::ConvertTo(hn::RebindToSigned<D>(), position);
    lanes.store(hn::DemoteTo(hn::Rebind<std::uint8_t, D>(), number), w.positions + c);
  }
}

// From one window to the next. Passed by value, since stored bytes could alias anything else.
struct Steps {
  std::int64_t src, dst, positions;

  template <typename T>
  HWY_INLINE void advance(Window<T>& w) const {
    w.src += src;
    w.dst += dst;
    if (w.positions != nullptr) w.positions += positions;
    if (w.wide_positions != nullptr) w.wide_positions += positions;
  }
};

template <int kSize, bool kPositions, typename T, class D>
HWY_INLINE void max_run(D d, std::int64_t channels, Window<T> w, Steps steps, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    for_lanes(d, channels, [&](auto lanes, std::int64_t c) HWY_ATTR {
      max_of_square<kSize, kPositions>(d, lanes, w, c);
    });
    w.src += steps.src;
    w.dst += steps.dst;
    if constexpr (kPositions) w.positions += steps.positions;
  }
}

// `count` neighbouring windows whose taps lie on the image in the same way.
struct Max {
  template <typename T, class D>
  HWY_INLINE void operator()(D d, const PoolTask& task, Window<T> w, Steps steps,
                             std::int64_t count) const {
    const std::int64_t size = task.rows.kernel, channels = task.channels;
    const bool whole = w.rows == size && w.columns == size && task.columns.kernel == size;
    if (whole && size == 2 && w.positions != nullptr) {
      return max_run<2, true>(d, channels, w, steps, count);
    }
    if (whole && size == 3 && w.positions != nullptr) {
      return max_run<3, true>(d, channels, w, steps, count);
    }
    if (whole && size == 2) return max_run<2, false>(d, channels, w, steps, count);
    if (whole && size == 3) return max_run<3, false>(d, channels, w, steps, count);
    const std::int64_t kernel_columns = task.columns.kernel;
    for (std::int64_t i = 0; i < count; ++i) {
      for_lanes(d, channels, [&](auto lanes, std::int64_t c) HWY_ATTR {
        max_of_any(d, lanes, kernel_columns, w, c);
      });
      steps.advance(w);
    }
  }
};

// kVectors neighbouring vectors, whose sums do not wait for each other.
template <int kVectors, typename T, class D, class Lanes>
HWY_INLINE void average_strip(D d, Lanes lanes, const Window<T>& w, float inverse, std::int64_t c) {
  const std::int64_t step = lanes_of(d);
  hn::Vec<D> sum[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) sum[v] = hn::Zero(d);
  for (std::int64_t row = 0; row < w.rows; ++row) {
    for (std::int64_t column = 0; column < w.columns; ++column) {
      const T* src = w.src + row * w.row_step + column * w.column_step + c;
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sum[v] = hn::Add(sum[v], lanes.load(src + v * step));
    }
  }
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    lanes.store(hn::Mul(sum[v], hn::Set(d, inverse)), w.dst + c + v * step);
  }
}

struct Average {
  template <typename T, class D>
  HWY_INLINE void operator()(D d, const PoolTask& task, Window<T> w, Steps steps,
                             std::int64_t count) const {
    const float inverse = 1.0F / static_cast<float>(w.divisor);
    const std::int64_t step = lanes_of(d), channels = task.channels;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t c = 0;
      for (; c + 4 * step <= channels; c += 4 * step) {
        average_strip<4>(d, FullLanes<D>(), w, inverse, c);
      }
      for (; c + step <= channels; c += step) {
        average_strip<1>(d, FullLanes<D>(), w, inverse, c);
      }
      if (c < channels) average_strip<1>(d, FirstLanes<D>{channels - c}, w, inverse, c);
      steps.advance(w);
    }
  }
};

// dst rows [begin, end) of all samples.
template <typename T, class D, class Operation>
HWY_INLINE void pool_with(D d, const PoolTask& task, Range range, Operation operation) {
  const bool wide = task.wide_positions.data != nullptr;
  const Steps steps = {task.columns.stride * task.src.pixel, task.dst.pixel,
                       wide ? task.wide_positions.pixel : task.positions.pixel};
  const ImageView<const T> src = task.src.as<const T>();
  const ImageView<T> dst = task.dst.as<T>();
  Window<T> w{};
  w.row_step = task.rows.dilation * task.src.row;
  w.column_step = task.columns.dilation * task.src.pixel;
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const std::int64_t n = row / task.rows.windows, h = row % task.rows.windows;
    const WindowTaps& row_taps = task.row_taps[h];
    w.first_row = row_taps.begin;
    w.rows = row_taps.end - row_taps.begin;
    std::int64_t column = 0;
    while (column < task.columns.windows) {
      const WindowTaps& taps = task.column_taps[column];
      std::int64_t next = column + 1;
      while (next < task.columns.windows && task.column_taps[next] == taps) ++next;
      w.first_column = taps.begin;
      w.columns = taps.end - taps.begin;
      w.divisor = row_taps.divisor * taps.divisor;
      w.src = src.at(n, task.rows.pixel(h, row_taps.begin), task.columns.pixel(column, taps.begin));
      w.dst = dst.at(n, h, column);
      if (task.positions.data != nullptr) w.positions = task.positions.at(n, h, column);
      if (wide) w.wide_positions = task.wide_positions.at(n, h, column);
      operation(d, task, w, steps, next - column);
      column = next;
    }
  }
}

// Few channels fill a shorter vector better.
template <class Operation>
HWY_INLINE void pool_by_width(const PoolTask& task, Range range, Operation operation) {
  with_element(task.dtype, [&](auto element) HWY_ATTR {
    using T = decltype(element);
    if (task.channels <= 8) {
      pool_with<T>(hn::CappedTag<float, 8>(), task, range, operation);
    } else {
      pool_with<T>(hn::ScalableTag<float>(), task, range, operation);
    }
  });
}

void max_rows(const PoolTask& task, Range range) { pool_by_width(task, range, Max()); }

void average_rows(const PoolTask& task, Range range) { pool_by_width(task, range, Average()); }

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(max_rows);
HWY_EXPORT(average_rows);

class Pool final : public Kernel {
 public:
  Pool(const PoolAttributes& attributes, const Shape& src, const Shape& dst)
      : kind_(attributes.kind),
        rows_(pool_rows_axis(attributes, src[2], dst[2])),
        columns_(pool_columns_axis(attributes, src[3], dst[3])),
        row_taps_(taps_of_windows(rows_, attributes.count_include_pad)),
        column_taps_(taps_of_windows(columns_, attributes.count_include_pad)) {
    traits = {.slices = true};
  }

  void run(const KernelArgs& args) const override {
    PoolTask task;
    const Shape& shape = args.outputs[0].shape();
    task.channels = shape[1];
    task.rows = rows_;
    task.columns = columns_;
    task.row_taps = row_taps_.data();
    task.column_taps = column_taps_.data();
    task.dtype = args.inputs[0].spec.dtype;
    task.src = ImageView<std::byte>(args.inputs[0]);
    task.dst = ImageView<std::byte>(args.outputs[0]);
    if (kind_ == PoolKind::max && args.outputs[1].data != nullptr) {
      if (args.outputs[1].spec.dtype == DType::u8) {
        task.positions = ImageView<std::uint8_t>(args.outputs[1]);
      } else {
        task.wide_positions = ImageView<std::int32_t>(args.outputs[1]);
      }
    }
    const std::int64_t work = shape[1] * shape[3] * rows_.kernel * columns_.kernel;
    const std::int64_t grain = std::max<std::int64_t>(1, 16384 / work);
    parallel_for(shape[0] * shape[2], grain, [&](std::int64_t begin, std::int64_t end) {
      if (kind_ == PoolKind::max) {
        HWY_DYNAMIC_DISPATCH(max_rows)(task, {begin, end});
      } else {
        HWY_DYNAMIC_DISPATCH(average_rows)(task, {begin, end});
      }
    });
  }

 private:
  PoolKind kind_;
  PoolAxis rows_, columns_;
  std::vector<WindowTaps> row_taps_, column_taps_;
};

std::string check_pool(const Problem& problem) {
  if (std::get<PoolAttributes>(problem.node().attributes).kind == PoolKind::adaptive_average) {
    return "windows of different sizes";
  }
  return refuse_other_than_floats(problem);
}

std::unique_ptr<Kernel> make_pool(const Problem& problem, std::span<const Layout>) {
  auto kernel = std::make_unique<Pool>(std::get<PoolAttributes>(problem.node().attributes),
                                       problem.input(0).shape, problem.output(0).shape);
  set_layouts(*kernel, problem, Layout::nhwc());
  return kernel;
}

constexpr KernelRow kRows[] = {{"pool", match_one<OpKind::pool>, check_pool, make_pool}};

}  // namespace

std::span<const KernelRow> pool_rows() { return kRows; }

}  // namespace ridgeline::native
#endif
