#include "base/philox.h"

#include <cmath>
#include <numbers>

namespace ridgeline {

std::uint32_t PhiloxSequence::next() {
  if (used_ == 4) {
    block_ = philox(key_, counter_++, substream_);
    used_ = 0;
  }
  return block_[static_cast<std::size_t>(used_++)];
}

double PhiloxSequence::uniform_double() {
  const std::uint64_t high = next(), low = next();
  return static_cast<double>((high << 21) ^ (low >> 11)) * (1.0 / 9007199254740992.0);
}

double PhiloxSequence::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform_double()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform_double());
}

std::uint64_t PhiloxSequence::below(std::uint64_t bound) {
  const std::uint64_t limit = UINT64_MAX - UINT64_MAX % bound;
  for (;;) {
    const std::uint64_t draw = (std::uint64_t{next()} << 32) | next();
    if (draw < limit) return draw % bound;
  }
}

}  // namespace ridgeline
