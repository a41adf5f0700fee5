#pragma once

// What two runs have in common: only runs of the same work may be compared.

#include <string>
#include <vector>

#include "store/records.h"

namespace ridgeline {

// One field that differs.
struct Difference {
  std::string field, a, b;
  [[nodiscard]] std::string text() const;  // "batch: 64 against 128"
};
[[nodiscard]] std::string differences_text(const std::vector<Difference>& differences);

[[nodiscard]] std::vector<Difference> work_differences(const RunRecord& a, const RunRecord& b);
[[nodiscard]] std::vector<Difference> executor_differences(const RunRecord& a, const RunRecord& b);

// Whether both were measured in one call, turn by turn.
[[nodiscard]] bool took_turns(const RunRecord& a, const RunRecord& b);

// How the times of a run came about. Iterations that were watched for a profile are slower, those
// of a training are not stored one by one; everything else measures as `bench` does.
enum class Way { iterations, training, profile };
[[nodiscard]] Way way_of(const RunRecord& run);

// Whether one run is a repetition of the other: the same work, executor and environment.
[[nodiscard]] bool repeats(const RunRecord& a, const RunRecord& b);

}  // namespace ridgeline
