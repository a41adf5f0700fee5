#pragma once

#include <cstdint>

#include "base/shape.h"

namespace ridgeline {

struct OpDef;

// Over which axes of `a` the second factor stands still.
enum class Broadcast : std::uint8_t {
  none,     // b has a's shape
  image,    // b is (N, C, 1, 1): one factor for a channel of a sample, as squeeze-and-excitation
  channel,  // b is (C): one factor for a channel, as layer scale
};

struct MultiplyAttributes {
  Broadcast b = Broadcast::none;
};

// How b goes with a. Throws bad_input where it does not.
[[nodiscard]] Broadcast broadcast_of(const Shape& a, const Shape& b);

extern const OpDef multiply_op;  // (a, b) -> dst, in a's shape and type
// The gradient with respect to a factor that stands still, `image` or `channel`: the sums over
// what it was multiplied with. In all other cases the gradient is a multiply of its own.
extern const OpDef multiply_backward_op;  // (diff_dst, a) -> diff_b

}  // namespace ridgeline
