#pragma once

// A table as CSV for programs (RFC 4180): numbers as they are, with their units in the header and
// the ends of their intervals in columns of their own.

#include <string>

#include "report/table.h"

namespace ridgeline::report {

// What is missing is empty. Where the table has footnotes, the last column has those of the row.
[[nodiscard]] std::string csv_table(const Table& table);

}  // namespace ridgeline::report
