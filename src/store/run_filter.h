#pragma once

// Runs chosen by what they are: "backend=native,batch=64,label=before".

#include <map>
#include <string>
#include <string_view>

#include "store/records.h"

namespace ridgeline {

// Names of fields of a run, of its work or its executor, or options of its network, with the value
// as people see it.
using RunFilter = std::map<std::string, std::string, std::less<>>;

// A part without '=' belongs to the value before it: "hidden=64,32" is one condition. Throws
// bad_input for a name that no run can have.
[[nodiscard]] RunFilter parse_run_filter(const std::string& text);

[[nodiscard]] bool fits(const RunRecord& run, const RunFilter& filter);

}  // namespace ridgeline
