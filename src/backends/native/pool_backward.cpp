#include <algorithm>
#include <optional>
#include <type_traits>

#include "backends/native/pool_geometry.h"
#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/pool_backward.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/activation-inl.h"
#include "backends/native/lanes-inl.h"
#include "backends/native/reduce-inl.h"
#include "plan/patterns.h"

#ifndef RIDGELINE_NATIVE_POOL_BACKWARD_TYPES
#define RIDGELINE_NATIVE_POOL_BACKWARD_TYPES
namespace ridgeline::native {
namespace {

struct PoolBackwardTask {
  DType dtype = DType::f32;
  std::int64_t channels = 0;
  PoolAxis rows, columns;
  const Covers* row_covers = nullptr;
  const Covers* column_covers = nullptr;
  const float* inverses = nullptr;  // average: 1 / divisor of each window; max: null
  ImageView<std::byte> diff_dst, kept, diff_src;
  ImageView<const std::uint8_t> positions;  // max: one of the two
  ImageView<const std::int32_t> wide_positions;
  const ActivationAttributes* activation = nullptr;  // none: null
};

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

template <class D, class V>
HWY_INLINE V where_position(D d, hn::Vec<hn::RebindToSigned<D>> position, std::int64_t tap, V v) {
  const hn::RebindToSigned<D> di;
  const auto wanted = hn::Set(di, static_cast<std::int32_t>(tap));
  return hn::IfThenElseZero(hn::RebindMask(d, hn::Eq(position, wanted)), v);
}

template <class D, class Lanes>
HWY_INLINE hn::Vec<hn::RebindToSigned<D>> load_positions(D, Lanes lanes, const std::uint8_t* from) {
  return hn::PromoteTo(hn::RebindToSigned<D>(), lanes.load(from));
}

// What a window gives of its diff_dst to the pixel under one of its taps: all where the maximum was
// there, or an equal share.
template <class D, class Lanes, class V>
HWY_INLINE V share_of_window(D d, Lanes lanes, const PoolBackwardTask& task, std::int64_t n,
                             Cover row, Cover column, std::int64_t c, V diff_dst) {
  if (task.inverses != nullptr) {
    const float inverse = task.inverses[row.window * task.columns.windows + column.window];
    return hn::Mul(diff_dst, hn::Set(d, inverse));
  }
  const std::int64_t tap = row.tap * task.columns.kernel + column.tap;
  if (task.positions.data != nullptr) {
    const std::uint8_t* position = task.positions.at(n, row.window, column.window) + c;
    return where_position(d, load_positions(d, lanes, position), tap, diff_dst);
  }
  const std::int32_t* position = task.wide_positions.at(n, row.window, column.window) + c;
  return where_position(d, lanes.load(position), tap, diff_dst);
}

// Where a strip of channels is: kVectors vectors from channel c on, in row h of sample n.
struct Place {
  std::int64_t n, h, c;
};

// The gradient before the activation becomes the one after it, is stored and added to the sums.
template <typename T, class D, class Lanes, class Activation, class V>
HWY_INLINE void finish(D d, Lanes lanes, const T* kept, T* diff_src, Activation activation, V diff,
                       V& sum) {
  if constexpr (Activation::kActive) diff = activation.backward(d, diff, lanes.load(kept));
  lanes.store(diff, diff_src);
  sum = hn::Add(sum, diff);
}

// One row of diff_src: each pixel gathers from the windows that cover it.
template <int kVectors, typename T, class D, class Lanes, class Activation>
HWY_INLINE void gather_strip(D d, Lanes lanes, const PoolBackwardTask& task, Place at,
                             Activation activation, hn::Vec<D>* sums) {
  const std::int64_t step = lanes_of(d);
  const ImageView<const T> diff_dsts = task.diff_dst.as<const T>(), kepts = task.kept.as<const T>();
  const ImageView<T> diff_srcs = task.diff_src.as<T>();
  const Cover* const rows_begin = task.row_covers->begin(at.h);
  const Cover* const rows_end = task.row_covers->end(at.h);
  for (std::int64_t w = 0; w < task.columns.size; ++w) {
    hn::Vec<D> diff[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) diff[v] = hn::Zero(d);
    for (const Cover* row = rows_begin; row < rows_end; ++row) {
      for (const Cover* column = task.column_covers->begin(w); column < task.column_covers->end(w);
           ++column) {
        const T* diff_dst = diff_dsts.at(at.n, row->window, column->window) + at.c;
#pragma GCC unroll 4
        for (int v = 0; v < kVectors; ++v) {
          diff[v] =
              hn::Add(diff[v], share_of_window(d, lanes, task, at.n, *row, *column, at.c + v * step,
                                               lanes.load(diff_dst + v * step)));
        }
      }
    }
    T* diff_src = diff_srcs.at(at.n, at.h, w) + at.c;
    const T* kept = Activation::kActive ? kepts.at(at.n, at.h, w) + at.c : diff_src;
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      finish(d, lanes, kept + v * step, diff_src + v * step, activation, diff[v], sums[v]);
    }
  }
}

// The two rows of diff_src under one row of 2x2 windows that neither overlap nor leave gaps.
template <int kVectors, typename T, class D, class Lanes, class Activation>
HWY_INLINE void scatter_strip(D d, Lanes lanes, const PoolBackwardTask& task, Place at,
                              Activation activation, hn::Vec<D>* sums) {
  const std::int64_t step = lanes_of(d);
  const T* diff_dst = task.diff_dst.as<const T>().at(at.n, at.h, 0) + at.c;
  const std::uint8_t* positions = task.positions.at(at.n, at.h, 0) + at.c;
  T* diff_src = task.diff_src.as<T>().at(at.n, 2 * at.h, 0) + at.c;
  const T* kept =
      Activation::kActive ? task.kept.as<const T>().at(at.n, 2 * at.h, 0) + at.c : diff_src;
  for (std::int64_t window = 0; window < task.columns.windows; ++window) {
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) {
      const auto diff = lanes.load(diff_dst + v * step);
      const auto position = load_positions(d, lanes, positions + v * step);
#pragma GCC unroll 4
      for (int tap = 0; tap < 4; ++tap) {
        const std::int64_t row = tap / 2, column = tap % 2;
        finish(d, lanes, kept + row * task.kept.row + column * task.kept.pixel + v * step,
               diff_src + row * task.diff_src.row + column * task.diff_src.pixel + v * step,
               activation, where_position(d, position, tap, diff), sums[v]);
      }
    }
    diff_dst += task.diff_dst.pixel;
    positions += task.positions.pixel;
    kept += 2 * task.kept.pixel;
    diff_src += 2 * task.diff_src.pixel;
  }
}

template <typename T, class D>
HWY_INLINE void clear_pixels(D d, const PoolBackwardTask& task, std::int64_t n, std::int64_t h,
                             std::int64_t first) {
  for (std::int64_t w = first; w < task.columns.size; ++w) {
    for_lanes(d, task.channels, [&](auto lanes, std::int64_t c) HWY_ATTR {
      lanes.store(hn::Zero(d), task.diff_src.as<T>().at(n, h, w) + c);
    });
  }
}

// Calls body(strip, lanes, c, totals) for strips of channels, where strip is the number of vectors
// as a type; adds the totals to the sums where they are wanted.
template <int kVectors, class D, class Lanes, typename Body>
HWY_INLINE void run_strip(D d, Lanes lanes, std::int64_t c, double* sums, const Body& body) {
  hn::Vec<D> totals[kVectors];
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) totals[v] = hn::Zero(d);
  body(std::integral_constant<int, kVectors>(), lanes, c, totals);
  if (sums == nullptr) return;
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    add_to_doubles(d, lanes, totals[v], sums + c + v * lanes_of(d));
  }
}

template <class D, typename Body>
HWY_INLINE void for_strips(D d, std::int64_t channels, double* sums, const Body& body) {
  const std::int64_t step = lanes_of(d);
  std::int64_t c = 0;
  // Vectors made shorter for few channels never come in fours.
  if constexpr (std::is_same_v<D, hn::ScalableTag<float>>) {
    for (; c + 4 * step <= channels; c += 4 * step) run_strip<4>(d, FullLanes<D>(), c, sums, body);
  }
  for (; c + step <= channels; c += step) run_strip<1>(d, FullLanes<D>(), c, sums, body);
  if (c < channels) run_strip<1>(d, FirstLanes<D>{channels - c}, c, sums, body);
}

template <typename T, class D, class Activation>
HWY_INLINE void gather_rows(D d, const PoolBackwardTask& task, Range range, double* sums,
                            Activation activation) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const std::int64_t n = row / task.rows.size, h = row % task.rows.size;
    for_strips(
        d, task.channels, sums, [&](auto strip, auto lanes, std::int64_t c, auto* totals) HWY_ATTR {
          gather_strip<decltype(strip)::value, T>(d, lanes, task, {n, h, c}, activation, totals);
        });
  }
}

// Rows are rows of windows; the last of a sample also clears what no window covers below it.
template <typename T, class D, class Activation>
HWY_INLINE void scatter_windows(D d, const PoolBackwardTask& task, Range range, double* sums,
                                Activation activation) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const std::int64_t n = row / task.rows.windows, h = row % task.rows.windows;
    for_strips(
        d, task.channels, sums, [&](auto strip, auto lanes, std::int64_t c, auto* totals) HWY_ATTR {
          scatter_strip<decltype(strip)::value, T>(d, lanes, task, {n, h, c}, activation, totals);
        });
    clear_pixels<T>(d, task, n, 2 * h, 2 * task.columns.windows);
    clear_pixels<T>(d, task, n, 2 * h + 1, 2 * task.columns.windows);
    if (h + 1 < task.rows.windows) continue;
    for (std::int64_t below = 2 * h + 2; below < task.rows.size; ++below) {
      clear_pixels<T>(d, task, n, below, 0);
    }
  }
}

// `sums` null: not wanted.
void gather_pixels(const PoolBackwardTask& task, Range range, double* sums) {
  with_element(task.dtype, [&](auto element) HWY_ATTR {
    using T = decltype(element);
    with_common_activation(task.activation, [&](auto activation) HWY_ATTR {
      gather_rows<T>(hn::ScalableTag<float>(), task, range, sums, activation);
    });
  });
}

void scatter_pixels(const PoolBackwardTask& task, Range range, double* sums) {
  with_element(task.dtype, [&](auto element) HWY_ATTR {
    using T = decltype(element);
    with_common_activation(task.activation, [&](auto activation) HWY_ATTR {
      if (task.channels <= 8) {
        scatter_windows<T>(hn::CappedTag<float, 8>(), task, range, sums, activation);
      } else {
        scatter_windows<T>(hn::ScalableTag<float>(), task, range, sums, activation);
      }
    });
  });
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(gather_pixels);
HWY_EXPORT(scatter_pixels);

// Where the operands stand among the kernel's arguments; diff_src is output 0.
struct PoolBackwardOperands {
  std::size_t diff_dst = 0;
  std::optional<std::size_t> positions, kept;  // inputs
  std::optional<std::size_t> diff_bias;        // output
};

bool is_two_by_two(const PoolAttributes& a) {
  return a.kind == PoolKind::max && a.kernel_h == 2 && a.kernel_w == 2 && a.stride_h == 2 &&
         a.stride_w == 2 && a.pad_top == 0 && a.pad_left == 0 && a.dilation_h == 1 &&
         a.dilation_w == 1;
}

class PoolBackward final : public Kernel {
 public:
  PoolBackward(const PoolBackwardOperands& operands, const PoolAttributes& attributes,
               const ActivationAttributes* activation, const Shape& src, const Shape& dst)
      : operands_(operands),
        channels_(src[1]),
        parts_(reduction_parts(src.elements())),
        rows_(pool_rows_axis(attributes, src[2], dst[2])),
        columns_(pool_columns_axis(attributes, src[3], dst[3])),
        row_covers_(covers_of_pixels(rows_)),
        column_covers_(covers_of_pixels(columns_)) {
    // A window cut off at the end would need a border case.
    scatter_ = is_two_by_two(attributes) && 2 * dst[2] <= src[2] && 2 * dst[3] <= src[3];
    if (activation != nullptr) activation_ = *activation;
    if (attributes.kind == PoolKind::average) set_inverses(attributes.count_include_pad);
    if (operands.diff_bias) {
      workspace_bytes = static_cast<std::size_t>(parts_ * channels_) * sizeof(double);
    }
    traits = {.slices = true};
  }

  void run(const KernelArgs& args) const override {
    const PoolBackwardTask task = make_task(args);
    const std::int64_t samples = args.outputs[0].shape()[0];
    const std::int64_t rows = samples * (scatter_ ? rows_.windows : rows_.size);
    const auto compute = [&](Range range, double* sums) {
      if (scatter_) {
        HWY_DYNAMIC_DISPATCH(scatter_pixels)(task, range, sums);
      } else {
        HWY_DYNAMIC_DISPATCH(gather_pixels)(task, range, sums);
      }
    };
    if (!operands_.diff_bias) {
      for_each_part(parts_, rows, [&](int, Range range) { compute(range, nullptr); });
      return;
    }
    const PartialSums sums{reinterpret_cast<double*>(args.workspace), parts_, 1, channels_};
    for_each_part(parts_, rows, [&](int part, Range range) {
      sums.clear(part);
      compute(range, sums.part(part));
    });
    auto* diff_bias = args.outputs[*operands_.diff_bias].as<float>();
    for (std::int64_t c = 0; c < channels_; ++c) {
      diff_bias[c] = static_cast<float>(sums.total(0, c, channels_));
    }
  }

 private:
  void set_inverses(bool count_padding) {
    const std::vector<WindowTaps> columns = taps_of_windows(columns_, count_padding);
    for (const WindowTaps& row : taps_of_windows(rows_, count_padding)) {
      for (const WindowTaps& column : columns) {
        inverses_.push_back(1.0F / static_cast<float>(row.divisor * column.divisor));
      }
    }
  }

  [[nodiscard]] PoolBackwardTask make_task(const KernelArgs& args) const {
    PoolBackwardTask task;
    task.channels = channels_;
    task.rows = rows_;
    task.columns = columns_;
    task.row_covers = &row_covers_;
    task.column_covers = &column_covers_;
    if (!inverses_.empty()) task.inverses = inverses_.data();
    task.dtype = args.outputs[0].spec.dtype;
    task.diff_dst = ImageView<std::byte>(args.inputs[operands_.diff_dst]);
    task.diff_src = ImageView<std::byte>(args.outputs[0]);
    if (operands_.kept) task.kept = ImageView<std::byte>(args.inputs[*operands_.kept]);
    if (operands_.positions) {
      const Tensor& positions = args.inputs[*operands_.positions];
      if (positions.spec.dtype == DType::u8) {
        task.positions = ImageView<const std::uint8_t>(positions);
      } else {
        task.wide_positions = ImageView<const std::int32_t>(positions);
      }
    }
    if (activation_) task.activation = &*activation_;
    return task;
  }

  PoolBackwardOperands operands_;
  std::int64_t channels_;
  int parts_;
  PoolAxis rows_, columns_;
  Covers row_covers_, column_covers_;
  std::vector<float> inverses_;
  std::optional<ActivationAttributes> activation_;
  bool scatter_ = false;
};

std::string check_pool_backward(const Problem& problem) {
  if (std::get<PoolAttributes>(problem.node().attributes).kind == PoolKind::adaptive_average) {
    return "windows of different sizes";
  }
  return refuse_other_than_floats(problem);
}

std::unique_ptr<Kernel> make_pool_backward(const Problem& problem, std::span<const Layout>) {
  const Node& pool = problem.node();
  const auto& attributes = std::get<PoolAttributes>(pool.attributes);
  const ActivationAttributes* activation = nullptr;
  PoolBackwardOperands operands;
  operands.diff_dst = problem.input_index(pool.inputs[0]);
  if (attributes.kind == PoolKind::max) operands.positions = problem.input_index(pool.inputs[1]);
  for (std::size_t i = 1; i < problem.nodes.size(); ++i) {
    const Node& node = problem.node(i);
    if (node.kind == OpKind::activation_backward) {
      activation = &std::get<ActivationAttributes>(node.attributes);
      operands.kept = problem.input_index(node.inputs[1]);
    } else {
      operands.diff_bias = problem.output_index(node.outputs[0]);
    }
  }
  auto kernel =
      std::make_unique<PoolBackward>(operands, attributes, activation, problem.output(0).shape,
                                     problem.input(operands.diff_dst).shape);
  set_layouts(*kernel, problem, Layout::nhwc());
  return kernel;
}

constexpr KernelRow kRows[] = {
    {"pool_act_backward_bias", patterns::pool_act_backward_bias, check_pool_backward,
     make_pool_backward},
    {"pool_act_backward", patterns::pool_act_backward, check_pool_backward, make_pool_backward},
    {"pool_backward", match_one<OpKind::pool_backward>, check_pool_backward, make_pool_backward},
};

}  // namespace

std::span<const KernelRow> pool_backward_rows() { return kRows; }

}  // namespace ridgeline::native
#endif
