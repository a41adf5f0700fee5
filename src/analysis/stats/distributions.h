#pragma once

// The few distributions that the statistics need.

#include <cstdint>

namespace ridgeline {

// The value that a standard normal variable does not exceed with probability p, 0 < p < 1.
[[nodiscard]] double normal_quantile(double p);

// The same for Student's t. `degrees` > 0, not necessarily whole; infinity gives the normal.
[[nodiscard]] double student_quantile(double p, double degrees);

// The chance that `drawn` out of `total` things, of which `marked` are marked, contain at least
// `hits` marked ones.
[[nodiscard]] double hypergeometric_tail(std::int64_t total, std::int64_t marked,
                                         std::int64_t drawn, std::int64_t hits);

}  // namespace ridgeline
