#pragma once

// How kernels cut their work into threads: division by numbers that are fixed at launch, packs that
// suit all operands, and blocks whose threads each keep to some channels. Only .cu files include
// this.

#include <algorithm>
#include <cstdint>
#include <initializer_list>

#include "backends/cuda/device.cuh"

namespace ridgeline::cuda {

inline std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Division as a multiplication and a shift, exact for dividends below 2^31: with s the logarithm of
// the divisor rounded up, the multiplier is 2^(31 + s) / divisor rounded up, and its error is too
// small to reach the next whole number.
class Divider {
 public:
  struct Parts {
    std::uint32_t quotient, remainder;
  };

  Divider() = default;
  explicit Divider(std::int64_t divisor) : divisor_(static_cast<std::uint32_t>(divisor)) {
    std::uint32_t log = 0;
    while ((std::int64_t{1} << log) < divisor) ++log;
    shift_ = 31 + log;
    const std::uint64_t power = std::uint64_t{1} << shift_;
    multiplier_ = static_cast<std::uint32_t>((power + divisor_ - 1) / divisor_);
  }

  __device__ __forceinline__ std::uint32_t quotient(std::uint32_t number) const {
    return static_cast<std::uint32_t>((std::uint64_t{number} * multiplier_) >> shift_);
  }
  __device__ __forceinline__ Parts split(std::uint32_t number) const {
    const std::uint32_t whole = quotient(number);
    return {whole, number - whole * divisor_};
  }

 private:
  std::uint32_t divisor_ = 1, multiplier_ = 1U << 31, shift_ = 31;
};

// Whether rows of elements can be read and written in packs of so many.
struct PackedRows {
  Rows rows;
  int element_bytes = 1;

  [[nodiscard]] bool fits(int pack) const {
    const auto address = reinterpret_cast<std::uintptr_t>(rows.data);
    return address % static_cast<std::uintptr_t>(pack * element_bytes) == 0 &&
           rows.width % pack == 0 && (rows.rows <= 1 || rows.stride % pack == 0);
  }
};

inline bool packs_fit(int pack, std::initializer_list<PackedRows> operands) {
  return std::all_of(operands.begin(), operands.end(), [&](const PackedRows& operand) {
    return operand.rows.data == nullptr || operand.fits(pack);
  });
}

// A block whose threads are spread over the packs of a group of channels and over `lanes` rows;
// each thread keeps its channels while it walks over rows. Threads left over do nothing.
struct ChannelBlock {
  int packs = 1, lanes = 1, groups = 1;
};

inline ChannelBlock channel_block(std::int64_t packs, int threads, int most_packs) {
  ChannelBlock block;
  block.groups = static_cast<int>(ceil_div(packs, most_packs));
  block.packs = static_cast<int>(ceil_div(packs, block.groups));
  block.lanes = threads / block.packs;
  return block;
}

}  // namespace ridgeline::cuda
