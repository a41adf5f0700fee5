#include <algorithm>
#include <chrono>

#include "measure/ceilings/cpu_loops.h"

namespace ridgeline::ceilings {
namespace {

#if defined(__x86_64__) || defined(__aarch64__)
constexpr int kAdditions = 100;

// Registers are added: some cores fold the addition of a constant into a rename.
void add_in_a_chain(std::int64_t rounds) {
  std::uint64_t sum = 1;
  const auto term = static_cast<std::uint64_t>(rounds);
  for (std::int64_t round = 0; round < rounds; ++round) {
#ifdef __x86_64__
    asm volatile(".rept 100\n\tadd %1, %0\n\t.endr" : "+r"(sum) : "r"(term) : "cc");
#else
    asm volatile(".rept 100\n\tadd %0, %0, %1\n\t.endr" : "+r"(sum) : "r"(term));
#endif
  }
}
#endif

}  // namespace

std::optional<double> effective_mhz() {
#if defined(__x86_64__) || defined(__aarch64__)
  constexpr std::int64_t kRounds = 1500;
  constexpr int kTrials = 3;  // the fastest was interrupted least
  double best = 0.0;
  for (int trial = 0; trial < kTrials; ++trial) {
    const auto start = std::chrono::steady_clock::now();
    add_in_a_chain(kRounds);
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    best = std::max(best, static_cast<double>(kRounds * kAdditions) / taken.count() / 1e6);
  }
  return best;
#else
  return std::nullopt;
#endif
}

}  // namespace ridgeline::ceilings
