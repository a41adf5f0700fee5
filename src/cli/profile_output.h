#pragma once

// What `profile` tells: tables with notes, a JSON document, one CSV row for each row of the table.

#include <optional>
#include <string>

#include "lab/profile.h"
#include "measure/profile/gains.h"
#include "measure/profile/tables.h"

namespace ridgeline::cli {

// The titles that the main table may have.
[[nodiscard]] std::vector<std::string> profile_columns();

// How it is shown.
struct ProfileView {
  TableBy by = TableBy::op;
  std::optional<std::int64_t> top;
  bool memory = false;                       // show what lives in it, step by step
  std::optional<StepDifference> difference;  // to the stored run
  std::string trace;                         // the file; empty: none was written
};

[[nodiscard]] std::string profile_text(const ProfileReport& report, const ProfileView& view);
[[nodiscard]] std::string profile_json(const ProfileReport& report, const ProfileView& view);
[[nodiscard]] std::string profile_csv(const ProfileReport& report, const ProfileView& view);

}  // namespace ridgeline::cli
