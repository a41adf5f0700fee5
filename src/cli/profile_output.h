#pragma once

// What `profile` tells: tables with notes, one CSV row for each row of the table.

#include <optional>
#include <string>

#include "documents/profile.h"
#include "measure/profile/gains.h"

namespace ridgeline::cli {

// The titles that the main table may have.
[[nodiscard]] std::vector<std::string> profile_columns();

[[nodiscard]] std::string profile_text(const ProfileReport& report, const ProfileView& view);
[[nodiscard]] std::string profile_csv(const ProfileReport& report, const ProfileView& view);

}  // namespace ridgeline::cli
