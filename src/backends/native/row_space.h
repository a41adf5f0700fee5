#pragma once

// How kernels without windows see tensors: as rows of contiguous elements, pixels by channels in
// nhwc and samples by everything else in plain. Dense tensors are cut anew into longer rows, so
// that vectors are full whatever the number of channels.

#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "plan/kernel.h"

namespace ridgeline::native {

// Rows of `width` elements that lie `stride` elements apart.
struct RowView {
  std::byte* data = nullptr;
  std::int64_t rows = 0, width = 0, stride = 0;

  [[nodiscard]] bool dense() const { return rows == 1 || stride == width; }
};

[[nodiscard]] RowView rows_of(const Tensor& tensor);

// Where one operand's rows lie, `stride` elements apart.
struct RowOperand {
  std::byte* data = nullptr;
  std::int64_t stride = 0;

  template <typename T>
  [[nodiscard]] T* row(std::int64_t index) const {
    return reinterpret_cast<T*>(data) + index * stride;
  }
};
[[nodiscard]] RowOperand operand_of(const Tensor& tensor);

// The rows a kernel walks over: all of one width except the last.
struct RowSpace {
  std::int64_t rows = 0, width = 0, last_width = 0;
  bool flat = false;         // rows are pieces of dense memory, not the tensors' own
  DType dtype = DType::f32;  // of the elements

  [[nodiscard]] std::int64_t width_of(std::int64_t row) const {
    return row + 1 == rows ? last_width : width;
  }
  [[nodiscard]] RowOperand operand(const Tensor& tensor) const;
  // Rows to a thread below which starting threads costs more than it gains.
  [[nodiscard]] std::int64_t grain() const;
};

// For work in which every element is alone. REQUIRES: tensors of one shape and one layout.
[[nodiscard]] RowSpace element_space(std::initializer_list<const Tensor*> tensors);

// For work with numbers per channel, whose rows start at channel 0 and hold whole repetitions of
// the channels. REQUIRES: as above, channels innermost.
[[nodiscard]] RowSpace channel_space(std::initializer_list<const Tensor*> tensors);

// The longest row channel_space makes for so many channels.
[[nodiscard]] std::int64_t channel_period(std::int64_t channels);

// Repeats one number per channel over a row.
void repeat_channels(std::span<const float> values, std::int64_t width, float* row);
// The same where the numbers already stand at the beginning of the row.
void repeat_first_channels(std::int64_t channels, std::int64_t width, float* row);

// The parts a reduction over so many elements is cut into, each with sums of its own.
[[nodiscard]] int reduction_parts(std::int64_t elements);

// Calls body(part, range) for each part's share of the rows, in parallel.
template <typename Body>
void for_each_part(int parts, std::int64_t rows, const Body& body) {
  parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t part = begin; part < end; ++part) {
      body(static_cast<int>(part), share_of(rows, static_cast<int>(part), parts));
    }
  });
}

// Sums per channel that are still in parts: `count` rows of `width` for each part.
struct PartialSums {
  double* data = nullptr;
  int parts = 1, count = 1;
  std::int64_t width = 0;

  [[nodiscard]] double* part(int p) const { return data + p * count * width; }
  void clear(int part) const;
  // Over all parts and all repetitions of the channel in a row, in fixed order.
  [[nodiscard]] double total(int index, std::int64_t channel, std::int64_t channels) const;
};

// Takes aligned pieces from a workspace; measures it when there is none yet.
class Carver {
 public:
  explicit Carver(std::byte* workspace) : base_(workspace) {}
  template <typename T>
  T* take(std::int64_t count) {
    std::byte* piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(piece);
  }
  [[nodiscard]] std::size_t bytes() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

// Why a problem with a float that is neither f32 nor bf16 is refused; empty when there is none.
[[nodiscard]] std::string refuse_other_than_floats(const Problem& problem);
// The same for matrix products, which in bf16 need a unit of their own.
[[nodiscard]] std::string refuse_product(const Problem& problem);

// Where each input of the problem's only node stands among the kernel's arguments.
[[nodiscard]] std::vector<std::size_t> places_of(const Problem& problem);

// The layout that all images among the inputs have now, where it is plain or nhwc; else nhwc.
[[nodiscard]] Layout common_layout(const Problem& problem, std::span<const Layout> layouts);

}  // namespace ridgeline::native
