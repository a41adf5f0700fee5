#pragma once

// What `profile` tells: tables with notes, a JSON document, one CSV row for each row of the table.

#include <optional>
#include <string>

#include "lab/profile/collect.h"
#include "lab/profile/difference.h"
#include "lab/profile/gains.h"
#include "lab/profile/tables.h"

namespace ridgeline::cli {

struct ProfileReport {
  Collected collected;
  Roofs roofs;  // empty: not known
  TableBy by = TableBy::op;
  std::optional<std::int64_t> top;
  bool memory = false;                       // show what lives in it, step by step
  std::optional<StepDifference> difference;  // against a stored run
  std::string run, store;                    // uuid and file; empty: not stored
  std::string trace;                         // the file; empty: none was written
};

[[nodiscard]] std::string profile_text(const ProfileReport& report);
[[nodiscard]] std::string profile_json(const ProfileReport& report);
[[nodiscard]] std::string profile_csv(const ProfileReport& report);

}  // namespace ridgeline::cli
