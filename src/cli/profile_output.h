#pragma once

// What `profile` tells: tables with notes, a JSON document, one CSV row for each row of the table.

#include <optional>
#include <string>

#include "lab/profile/collect.h"
#include "lab/profile/gains.h"
#include "lab/profile/tables.h"

namespace ridgeline::cli {

struct ProfileReport {
  Collected collected;
  Roofs roofs;  // empty: not known
  TableBy by = TableBy::op;
  std::optional<std::int64_t> top;
  std::string run, store;  // uuid and file; empty: not stored
  std::string trace;       // the file; empty: none was written
};

[[nodiscard]] std::string profile_text(const ProfileReport& report);
[[nodiscard]] std::string profile_json(const ProfileReport& report);
[[nodiscard]] std::string profile_csv(const ProfileReport& report);

}  // namespace ridgeline::cli
