#pragma once

// Counters by which the blocks of a kernel find out which of them is the last. They are 0 whenever
// no kernel runs: who counts up to the end starts over.

namespace ridgeline::cuda {

// So many counters in the memory of the current device, which no other kernel uses at the same time
// as long as fewer than kCounters are in use. They are never given back: after the last come the
// first again.
[[nodiscard]] unsigned* take_counters(int count);

inline constexpr int kCounters = 1 << 18;

}  // namespace ridgeline::cuda
