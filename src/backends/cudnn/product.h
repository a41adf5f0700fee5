#pragma once

// What this backend hands to the libraries: a convolution or a matrix product in one of its three
// directions, with what its epilogue adds. A linear layer is a 1x1 convolution of 1x1 images.

#include <array>
#include <optional>
#include <string>

#include "plan/kernel.h"

namespace ridgeline::cudnn {

enum class Direction : std::uint8_t { forward, backward_data, backward_weights };

// Images or weights with channels innermost; n is the number of filters for weights. `stride`:
// elements from one pixel to the next, more than c in a slice.
struct Image {
  std::int64_t n = 1, c = 1, h = 1, w = 1, stride = 1;

  [[nodiscard]] std::int64_t pixels() const { return n * h * w; }
  friend bool operator==(const Image&, const Image&) = default;
};

struct Product {
  Direction direction = Direction::forward;
  Conv2dAttributes conv;
  Image src, weights, dst;
  DType dtype = DType::f32;
  bool linear = false;  // a linear layer: no convolution engine is asked
  bool biased = false;
  std::optional<ActivationAttributes> activation;
  bool tf32 = false;

  // Whether it is one matrix product over all pixels.
  [[nodiscard]] bool pointwise() const;
  // "conv2d 128x64x56x56 256x64x1x1 s1x1 p0,0,0,0 d1x1 bf16": the key of its choice. Strides are
  // told where they have gaps.
  [[nodiscard]] std::string text() const;
};

// Where the operands of a product stand in all arguments. Backward data: diff_dst, weights ->
// diff_src. Backward weights: src, diff_dst -> diff_weights.
enum Operand : std::uint8_t { kFirst, kSecond, kBias, kResult };
inline constexpr std::size_t kOperands = 4;
using Operands = std::array<std::byte*, kOperands>;

// The image that is an operand of a product. REQUIRES: not the bias.
[[nodiscard]] const Image& image_of(const Product& product, Operand operand);
[[nodiscard]] Image& image_of(Product& product, Operand operand);

// The values of a problem that are its operands; the bias is kNoValue where there is none.
using OperandValues = std::array<ValueId, kOperands>;
[[nodiscard]] OperandValues operand_values(const Problem& problem);

// Why no library is asked to compute a problem; empty when they can be asked.
[[nodiscard]] std::string refuse_product(const Problem& problem);

// All operands without gaps. REQUIRES: the problem is not refused.
[[nodiscard]] Product product_of(const Problem& problem);

}  // namespace ridgeline::cudnn
