#include <algorithm>

#include "backends/native/row_space.h"
#include "backends/native/rows.h"
#include "base/simd_targets.h"
#include "plan/patterns.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/shuffle.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/lanes-inl.h"

#ifndef RIDGELINE_NATIVE_SHUFFLE_TYPES
#define RIDGELINE_NATIVE_SHUFFLE_TYPES
namespace ridgeline::native {
namespace {

// `many` rows of `half` channels each and `both` rows of twice as many: halves one after the other
// in `first` and `second`, alternating in `both`.
struct HalvesTask {
  RowOperand first, second, both;
  std::int64_t half = 0;
  std::size_t element = 4;  // bytes
};

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

template <typename T>
HWY_INLINE void interleave_as(const HalvesTask& task, Range range) {
  const hn::ScalableTag<T> d;
  const std::int64_t step = lanes_of(d);
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const T* first = task.first.row<const T>(row);
    const T* second = task.second.row<const T>(row);
    T* both = task.both.row<T>(row);
    std::int64_t c = 0;
    for (; c + step <= task.half; c += step) {
      hn::StoreInterleaved2(hn::LoadU(d, first + c), hn::LoadU(d, second + c), d, both + 2 * c);
    }
    for (; c < task.half; ++c) {
      both[2 * c] = first[c];
      both[2 * c + 1] = second[c];
    }
  }
}

template <typename T>
HWY_INLINE void separate_as(const HalvesTask& task, Range range) {
  const hn::ScalableTag<T> d;
  const std::int64_t step = lanes_of(d);
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    T* first = task.first.row<T>(row);
    T* second = task.second.row<T>(row);
    const T* both = task.both.row<const T>(row);
    std::int64_t c = 0;
    for (; c + step <= task.half; c += step) {
      hn::Vec<hn::ScalableTag<T>> even, odd;
      hn::LoadInterleaved2(d, both + 2 * c, even, odd);
      hn::StoreU(even, d, first + c);
      hn::StoreU(odd, d, second + c);
    }
    for (; c < task.half; ++c) {
      first[c] = both[2 * c];
      second[c] = both[2 * c + 1];
    }
  }
}

// Elements only move: those of two bytes are as good as any number of that size.
void interleave_rows(const HalvesTask& task, Range range) {
  if (task.element == 2) return interleave_as<std::uint16_t>(task, range);
  interleave_as<float>(task, range);
}

void separate_rows(const HalvesTask& task, Range range) {
  if (task.element == 2) return separate_as<std::uint16_t>(task, range);
  separate_as<float>(task, range);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(interleave_rows);
HWY_EXPORT(separate_rows);

std::int64_t grain_for(std::int64_t channels) {
  return std::max<std::int64_t>(1, 16384 / channels);
}

RowOperand behind(RowOperand operand, std::int64_t channels, std::size_t element) {
  operand.data += channels * static_cast<std::int64_t>(element);
  return operand;
}

class Shuffle final : public Kernel {
 public:
  explicit Shuffle(std::int64_t groups) : groups_(groups) {}

  void run(const KernelArgs& args) const override {
    const RowOperand src = operand_of(args.inputs[0]), dst = operand_of(args.outputs[0]);
    const std::int64_t channels = args.inputs[0].shape()[1], half = channels / 2;
    const std::int64_t rows = rows_of(args.inputs[0]).rows;
    const std::size_t element = size_of(args.inputs[0].spec.dtype);
    parallel_for(rows, grain_for(channels), [&](std::int64_t begin, std::int64_t end) {
      if (groups_ == 2) {
        HWY_DYNAMIC_DISPATCH(interleave_rows)
        ({src, behind(src, half, element), dst, half, element}, {begin, end});
      } else if (2 * groups_ == channels) {
        HWY_DYNAMIC_DISPATCH(separate_rows)
        ({dst, behind(dst, half, element), src, half, element}, {begin, end});
      } else if (element == 2) {
        transpose<std::uint16_t>(src, dst, channels, {begin, end});
      } else {
        transpose<float>(src, dst, channels, {begin, end});
      }
    });
  }

 private:
  template <typename T>
  void transpose(const RowOperand& src, const RowOperand& dst, std::int64_t channels,
                 Range range) const {
    const std::int64_t of_group = channels / groups_;
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      const T* from = src.row<const T>(row);
      T* to = dst.row<T>(row);
      for (std::int64_t i = 0; i < groups_; ++i) {
        for (std::int64_t j = 0; j < of_group; ++j) to[j * groups_ + i] = from[i * of_group + j];
      }
    }
  }

  std::int64_t groups_;
};

// concat of two equal halves and the shuffle with two groups behind it.
class ConcatShuffle final : public Kernel {
 public:
  explicit ConcatShuffle(const patterns::Halves& halves) : halves_(halves) {}

  void run(const KernelArgs& args) const override {
    const Tensor& first = args.inputs[halves_.first];
    const HalvesTask task{operand_of(first), operand_of(args.inputs[halves_.second]),
                          operand_of(args.outputs[0]), first.shape()[1], size_of(first.spec.dtype)};
    parallel_for(rows_of(first).rows, grain_for(2 * task.half),
                 [&](std::int64_t begin, std::int64_t end) {
                   HWY_DYNAMIC_DISPATCH(interleave_rows)(task, {begin, end});
                 });
  }

 private:
  patterns::Halves halves_;
};

// Its gradient: the shuffle back, and a slice for each half.
class ShuffleSlices final : public Kernel {
 public:
  explicit ShuffleSlices(const patterns::Halves& halves) : halves_(halves) {}

  void run(const KernelArgs& args) const override {
    const Tensor& first = args.outputs[halves_.first];
    const HalvesTask task{operand_of(first), operand_of(args.outputs[halves_.second]),
                          operand_of(args.inputs[0]), first.shape()[1], size_of(first.spec.dtype)};
    parallel_for(rows_of(first).rows, grain_for(2 * task.half),
                 [&](std::int64_t begin, std::int64_t end) {
                   HWY_DYNAMIC_DISPATCH(separate_rows)(task, {begin, end});
                 });
  }

 private:
  patterns::Halves halves_;
};

std::int64_t groups_of(const Node& node) {
  return std::get<ShuffleAttributes>(node.attributes).groups;
}

std::unique_ptr<Kernel> finished(std::unique_ptr<Kernel> kernel, const Problem& problem) {
  set_layouts(*kernel, problem, Layout::nhwc());
  kernel->traits = {.slices = true};
  return kernel;
}

std::unique_ptr<Kernel> make_shuffle(const Problem& problem, std::span<const Layout>) {
  return finished(std::make_unique<Shuffle>(groups_of(problem.node())), problem);
}

std::unique_ptr<Kernel> make_concat_shuffle(const Problem& problem, std::span<const Layout>) {
  return finished(std::make_unique<ConcatShuffle>(patterns::halves_of(problem)), problem);
}

std::unique_ptr<Kernel> make_shuffle_slices(const Problem& problem, std::span<const Layout>) {
  return finished(std::make_unique<ShuffleSlices>(patterns::halves_of(problem)), problem);
}

constexpr KernelRow kRows[] = {
    {"concat_shuffle", patterns::concat_shuffle, refuse_other_than_floats, make_concat_shuffle},
    {"shuffle_slices", patterns::shuffle_slices, refuse_other_than_floats, make_shuffle_slices},
    {"shuffle", match_one<OpKind::shuffle>, refuse_other_than_floats, make_shuffle},
};

}  // namespace

std::span<const KernelRow> shuffle_rows() { return kRows; }

}  // namespace ridgeline::native
#endif
