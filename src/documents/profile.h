#pragma once

// What `profile` found as a JSON document.

#include <optional>
#include <string>

#include "lab/profile.h"
#include "measure/profile/tables.h"

namespace ridgeline {

// How it is shown.
struct ProfileView {
  TableBy by = TableBy::op;
  std::optional<std::int64_t> top;
  bool memory = false;                       // show what lives in it, step by step
  std::optional<StepDifference> difference;  // to the stored run
  std::string trace;                         // the file; empty: none was written
};

[[nodiscard]] std::string profile_json(const ProfileReport& report, const ProfileView& view);

}  // namespace ridgeline
