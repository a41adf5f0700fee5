#pragma once

// A study's plan and outcome as a JSON document.

#include <string>
#include <vector>

#include "study/runner.h"

namespace ridgeline {

struct StudySummary {
  const study::Study* study = nullptr;
  study::Scale scale = study::Scale::small;
  std::string store, uuid;  // empty uuid: only planned
  bool resumed = false, interrupted = false;
  std::vector<StudyItemRecord> items;
  double seconds = 0.0;  // of this call
};
[[nodiscard]] std::string study_json(const StudySummary& summary);
// Of the built-in ones.
[[nodiscard]] std::string study_list_json();

}  // namespace ridgeline
