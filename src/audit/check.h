#pragma once

// Checks and what they find. A check is a function in the list of registry.cpp.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline::audit {

class Context;

enum class Severity { note, warning, error };
// How sure a finding is: certain follows from the file's own numbers or from arithmetic; likely
// rests on data sheets and on what is usual; possible has another explanation as good.
enum class Confidence { possible, likely, certain };

[[nodiscard]] std::string_view name_of(Severity severity);
[[nodiscard]] std::string_view name_of(Confidence confidence);

struct Finding {
  std::string check;  // its name in the list
  Severity severity = Severity::note;
  Confidence confidence = Confidence::possible;
  std::string evidence;           // what is wrong, with the numbers
  std::string cause;              // what usually leads to it, or what would be right; may be empty
  std::vector<std::size_t> rows;  // of the table, some of them
  std::size_t row_count = 0;      // all of them
};

struct Check {
  std::string_view name;     // "rate-times-time"
  std::string_view meaning;  // what it looks at, for --list and docs/audit.md
  void (*run)(Context& context, std::vector<Finding>& findings);
};

// In the order in which findings are shown.
[[nodiscard]] std::span<const Check> all_checks();

}  // namespace ridgeline::audit
