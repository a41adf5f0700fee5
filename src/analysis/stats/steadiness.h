#pragma once

#include <span>

namespace ridgeline {

// Whether a warm-up has become steady: the last window of its step times is as fast as the one
// before it, to within 2% or what the scatter inside the windows explains, and over both windows
// there is no trend: none that their noise would not show by itself (one time in 20) and that
// changes the time by 0.5% or more. A window is a third of the steps, from 3 to 20 of them; two
// windows are needed, and the very first step, which pays for everything once, is never part of
// them.
[[nodiscard]] bool steady_end(std::span<const double> seconds);

}  // namespace ridgeline
