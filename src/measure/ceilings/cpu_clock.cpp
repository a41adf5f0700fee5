#include <algorithm>
#include <chrono>

#include "base/arch.h"
#include "measure/ceilings/cpu_loops.h"

namespace ridgeline::ceilings {

double effective_mhz() {
  constexpr std::int64_t kRounds = 1500;
  constexpr int kTrials = 3;  // the fastest was interrupted least
  double best = 0.0;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::uint64_t sum = 1;
    const auto start = std::chrono::steady_clock::now();
    for (std::int64_t round = 0; round < kRounds; ++round) {
      add_hundred_times(sum, static_cast<std::uint64_t>(kRounds));
    }
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(kRounds * 100) / taken.count() / 1e6);
  }
  return best;
}

}  // namespace ridgeline::ceilings
