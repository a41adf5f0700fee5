#pragma once

// An audit as text and as JSON.

#include <string>

#include "audit/audit.h"

namespace ridgeline::cli {

// `all_columns`: those without a role as well.
[[nodiscard]] std::string audit_text(const audit::Audit& audit, bool all_columns);
[[nodiscard]] std::string audit_json(const audit::Audit& audit);

// What --roles and --checks print.
[[nodiscard]] std::string roles_text();
[[nodiscard]] std::string checks_text();

}  // namespace ridgeline::cli
