#include "backends/native/reorder.h"

#include <algorithm>
#include <cstring>

#include "backends/native/row_space.h"
#include "base/error.h"
#include "base/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "backends/native/reorder.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "backends/native/lanes-inl.h"

#ifndef RIDGELINE_NATIVE_REORDER_TYPES
#define RIDGELINE_NATIVE_REORDER_TYPES
namespace ridgeline::native {
namespace {

// Rows of bytes to be copied.
struct CopyTask {
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  std::int64_t src_stride = 0, dst_stride = 0, width = 0;  // bytes
  bool words = false;                                      // whole and aligned
};

// dst[sample][column][row] = src[sample][row][column]; rows and columns are contiguous on one side.
struct TransposeTask {
  const std::byte* src = nullptr;
  std::byte* dst = nullptr;
  std::int64_t rows = 0, columns = 0;
  std::int64_t src_sample = 0, src_row = 0, dst_sample = 0, dst_column = 0;  // strides, elements
  std::size_t element = 4;                                                   // bytes
};

// Rows given to a thread at a time.
constexpr std::int64_t kTransposeRows = 64;

}  // namespace
}  // namespace ridgeline::native
#endif

HWY_BEFORE_NAMESPACE();
namespace ridgeline::native {
namespace HWY_NAMESPACE {
namespace {

template <class D>
HWY_INLINE void copy_words(D d, const CopyTask& task, Range range) {
  for (std::int64_t row = range.begin; row < range.end; ++row) {
    const auto* src = reinterpret_cast<const std::uint32_t*>(task.src + row * task.src_stride);
    auto* dst = reinterpret_cast<std::uint32_t*>(task.dst + row * task.dst_stride);
    for_lanes(d, task.width / 4, [&](auto lanes, std::int64_t i) HWY_ATTR {
      lanes.store(lanes.load(src + i), dst + i);
    });
  }
}

void copy_rows(const CopyTask& task, Range range) {
  if (task.words && task.width == 32) {
    copy_words(hn::CappedTag<std::uint32_t, 8>(), task, range);
  } else if (task.words) {
    copy_words(hn::ScalableTag<std::uint32_t>(), task, range);
  } else {
    for (std::int64_t row = range.begin; row < range.end; ++row) {
      std::memcpy(task.dst + row * task.dst_stride, task.src + row * task.src_stride,
                  static_cast<std::size_t>(task.width));
    }
  }
}

template <typename T>
HWY_INLINE void transpose_elements(const T* HWY_RESTRICT src, std::int64_t src_row, Range rows,
                                   Range columns, T* HWY_RESTRICT dst, std::int64_t dst_column) {
  for (std::int64_t column = columns.begin; column < columns.end; ++column) {
    for (std::int64_t row = rows.begin; row < rows.end; ++row) {
      dst[column * dst_column + row] = src[row * src_row + column];
    }
  }
}

#if HWY_TARGET != HWY_SCALAR
// Four by four words.
HWY_INLINE void transpose_block(const float* HWY_RESTRICT src, std::int64_t src_row,
                                float* HWY_RESTRICT dst, std::int64_t dst_column) {
  const hn::FixedTag<float, 4> d;
  const hn::Repartition<double, decltype(d)> pairs;
  const auto a = hn::LoadU(d, src), b = hn::LoadU(d, src + src_row);
  const auto c = hn::LoadU(d, src + 2 * src_row), e = hn::LoadU(d, src + 3 * src_row);
  const auto ab_low = hn::BitCast(pairs, hn::InterleaveLower(d, a, b));
  const auto ce_low = hn::BitCast(pairs, hn::InterleaveLower(d, c, e));
  const auto ab_high = hn::BitCast(pairs, hn::InterleaveUpper(d, a, b));
  const auto ce_high = hn::BitCast(pairs, hn::InterleaveUpper(d, c, e));
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_low, ce_low)), d, dst);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_low, ce_low)), d, dst + dst_column);
  hn::StoreU(hn::BitCast(d, hn::InterleaveLower(pairs, ab_high, ce_high)), d, dst + 2 * dst_column);
  hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(pairs, ab_high, ce_high)), d, dst + 3 * dst_column);
}

// In tiles that use whole cache lines on both sides.
HWY_INLINE void transpose_words(const float* src, std::int64_t src_row, Range rows,
                                std::int64_t columns, float* dst, std::int64_t dst_column) {
  constexpr std::int64_t kTile = 16;
  const std::int64_t rows_end = rows.begin + (rows.end - rows.begin) / 4 * 4;
  const std::int64_t columns_end = columns / 4 * 4;
  for (std::int64_t left = 0; left < columns_end; left += kTile) {
    const std::int64_t right = HWY_MIN(left + kTile, columns_end);
    for (std::int64_t top = rows.begin; top < rows_end; top += kTile) {
      const std::int64_t bottom = HWY_MIN(top + kTile, rows_end);
      for (std::int64_t column = left; column < right; column += 4) {
        for (std::int64_t row = top; row < bottom; row += 4) {
          transpose_block(src + row * src_row + column, src_row, dst + column * dst_column + row,
                          dst_column);
        }
      }
    }
  }
  transpose_elements(src, src_row, {rows_end, rows.end}, {0, columns_end}, dst, dst_column);
  transpose_elements(src, src_row, rows, {columns_end, columns}, dst, dst_column);
}
#endif

template <typename T>
HWY_INLINE void transpose_rows(const TransposeTask& task, std::int64_t sample, Range rows) {
  const T* src = reinterpret_cast<const T*>(task.src) + sample * task.src_sample;
  T* dst = reinterpret_cast<T*>(task.dst) + sample * task.dst_sample;
#if HWY_TARGET != HWY_SCALAR
  if constexpr (sizeof(T) == 4) {
    return transpose_words(src, task.src_row, rows, task.columns, dst, task.dst_column);
  }
#endif
  transpose_elements(src, task.src_row, rows, {0, task.columns}, dst, task.dst_column);
}

// Blocks of rows, counted over all samples.
void transpose_blocks(const TransposeTask& task, Range range) {
  const std::int64_t blocks = (task.rows + kTransposeRows - 1) / kTransposeRows;
  for (std::int64_t block = range.begin; block < range.end; ++block) {
    const std::int64_t sample = block / blocks, begin = block % blocks * kTransposeRows;
    const Range rows = {begin, HWY_MIN(begin + kTransposeRows, task.rows)};
    switch (task.element) {
      case 1:
        transpose_rows<std::uint8_t>(task, sample, rows);
        break;
      case 2:
        transpose_rows<std::uint16_t>(task, sample, rows);
        break;
      case 4:
        transpose_rows<float>(task, sample, rows);
        break;
      default:
        transpose_rows<double>(task, sample, rows);
        break;
    }
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace ridgeline::native
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace ridgeline::native {
namespace {

HWY_EXPORT(copy_rows);
HWY_EXPORT(transpose_blocks);

constexpr std::int64_t kBytesPerThread = 65536;

void copy_same_layout(const Tensor& src, const Tensor& dst) {
  const auto element = static_cast<std::int64_t>(size_of(src.spec.dtype));
  RowView from = rows_of(src), to = rows_of(dst);
  if (from.dense() && to.dense()) {
    const std::int64_t bytes = from.rows * from.width * element;
    parallel_for(bytes, kBytesPerThread, [&](std::int64_t begin, std::int64_t end) {
      std::memcpy(to.data + begin, from.data + begin, static_cast<std::size_t>(end - begin));
    });
    return;
  }
  CopyTask task;
  task.src = from.data;
  task.dst = to.data;
  task.src_stride = from.stride * element;
  task.dst_stride = to.stride * element;
  task.width = from.width * element;
  // The C library's copy is as good for long rows.
  task.words = element % 4 == 0 && task.width <= 1024;
  const std::int64_t grain = kBytesPerThread / std::max<std::int64_t>(1, task.width) + 1;
  parallel_for(from.rows, grain, [&](std::int64_t begin, std::int64_t end) {
    HWY_DYNAMIC_DISPATCH(copy_rows)(task, {begin, end});
  });
}

void transpose(const Tensor& src, const Tensor& dst) {
  const Shape& shape = src.shape();
  const std::int64_t channels = shape[1], pixels = shape[2] * shape[3];
  const bool from_plain = src.layout.kind() == LayoutKind::plain;
  const Tensor& plain = from_plain ? src : dst;
  const Tensor& image = from_plain ? dst : src;
  const std::int64_t channel_stride = channels > 1 ? plain.strides[1] : pixels;
  const std::int64_t pixel_stride = rows_of(image).stride;
  TransposeTask task;
  task.src = src.data;
  task.dst = dst.data;
  task.rows = from_plain ? channels : pixels;
  task.columns = from_plain ? pixels : channels;
  task.src_sample = src.strides[0];
  task.dst_sample = dst.strides[0];
  task.src_row = from_plain ? channel_stride : pixel_stride;
  task.dst_column = from_plain ? pixel_stride : channel_stride;
  task.element = size_of(src.spec.dtype);
  const std::int64_t blocks = (task.rows + kTransposeRows - 1) / kTransposeRows;
  const std::int64_t block_bytes =
      std::min(task.rows, kTransposeRows) * task.columns * static_cast<std::int64_t>(task.element);
  parallel_for(shape[0] * blocks, kBytesPerThread / std::max<std::int64_t>(1, block_bytes) + 1,
               [&](std::int64_t begin, std::int64_t end) {
                 HWY_DYNAMIC_DISPATCH(transpose_blocks)(task, {begin, end});
               });
}

// Both layouts put the elements in one order when an image has one channel or one pixel.
bool order_is_equal(const Tensor& src, const Tensor& dst) {
  if (src.layout == dst.layout) return true;
  const Shape& shape = src.shape();
  const bool trivial = shape.rank() != 4 || shape[1] == 1 || shape[2] * shape[3] == 1;
  return trivial && src.dense() && dst.dense();
}

class Reorder final : public Kernel {
 public:
  void run(const KernelArgs& args) const override { copy_tensor(args.inputs[0], args.outputs[0]); }
};

}  // namespace

void copy_tensor(const Tensor& src, const Tensor& dst) {
  if (src.shape().elements() == 0) return;
  if (order_is_equal(src, dst)) {
    Tensor same = src;
    if (!(src.layout == dst.layout)) {
      same.layout = dst.layout;
      same.strides = dst.strides;
    }
    copy_same_layout(same, dst);
  } else {
    transpose(src, dst);
  }
}

std::unique_ptr<Kernel> make_reorder(const TensorSpec& spec, const Layout& from, const Layout& to) {
  if (from.kind() == LayoutKind::own || to.kind() == LayoutKind::own) return nullptr;
  const bool image = from.kind() == LayoutKind::nhwc || to.kind() == LayoutKind::nhwc;
  ensure(!image || spec.shape.rank() == 4, "a value of shape {} has no layout nhwc",
         spec.shape.text());
  auto kernel = std::make_unique<Reorder>();
  kernel->input_layouts = {from};
  kernel->output_layouts = {to};
  kernel->traits = {.slices = true};
  return kernel;
}

}  // namespace ridgeline::native
#endif
