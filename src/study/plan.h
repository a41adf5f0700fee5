#pragma once

// What a study means on one machine: the calls of commands that it takes, and what is left out and
// why.

#include <string>
#include <vector>

#include "store/records.h"
#include "study/capabilities.h"
#include "study/study.h"

namespace ridgeline::study {

// One call of a command, or something that is left out.
struct PlannedItem {
  StudyItemRecord record;          // without the study
  std::vector<std::string> words;  // behind the program's name, without the store; empty: left out
  std::string ceilings_of;         // the device, where it measures ceilings; else empty
};

// What of a study is to be done, and how.
struct StudyChoice {
  Scale scale = Scale::small;
  std::vector<std::string> only = {};  // parts; empty: all
  int threads = 0;                     // for all commands; 0: their own choice
};

// In the order of the file. Throws bad_input for parts that there are not, and for networks that
// cannot be built.
[[nodiscard]] std::vector<PlannedItem> plan_study(const Study& study, const StudyChoice& options,
                                                  Capabilities& machine);

// The part of the study that an item belongs to.
[[nodiscard]] std::string part_of(const StudyItemRecord& item);

// Words as a shell takes them.
[[nodiscard]] std::string shell_text(const std::vector<std::string>& words);

}  // namespace ridgeline::study
