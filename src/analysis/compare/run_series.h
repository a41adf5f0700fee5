#pragma once

// The measured iterations of one run as the comparison takes them.

#include <cstdint>
#include <span>
#include <vector>

#include "store/records.h"

namespace ridgeline {

struct RunSeries {
  std::vector<double> seconds;        // in the order of measuring
  std::vector<std::int64_t> turn;     // process and block in one number
  std::vector<std::int64_t> process;  // of each
  std::vector<double> at_seconds;     // since the measuring began
};

// Of the samples of kind `measured`, each time multiplied by `scale`.
[[nodiscard]] RunSeries run_series(std::span<const Sample> samples, double scale = 1.0);

// Epochs of a training that tell its speed: without the first, which fills caches and chooses
// kernels, unless there is no other.
[[nodiscard]] std::vector<EpochRecord> steady_epochs(std::vector<EpochRecord> epochs);

// The process in the number of a turn.
[[nodiscard]] inline std::int64_t process_of(std::int64_t turn) { return turn >> 32; }

// The turns that both runs have, when these took turns with each other: turn n of each was over
// before turn n + 1 of either began. Empty when they did not: then turns of the same number have
// nothing in common.
[[nodiscard]] std::vector<std::int64_t> shared_turns(const RunSeries& a, const RunSeries& b);

}  // namespace ridgeline
