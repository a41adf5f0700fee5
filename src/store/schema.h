#pragma once

// Which version of the schema a file has, and how it gets to the present one.

#include "store/sqlite.h"

namespace ridgeline {

inline constexpr std::int64_t kSchemaVersion = 9;
inline constexpr std::int64_t kApplicationId = 0x5244474C;  // "RDGL", in the header of the file

// The version of a store; 0: an empty file. Changes nothing. Throws bad_input for a database of
// another program and for a version that this program does not know.
[[nodiscard]] std::int64_t schema_version(sqlite::Connection& connection);

// Makes the tables in an empty file, or takes an older one step by step to the present version: in
// one transaction, and once when several programs try.
void bring_up_to_date(sqlite::Connection& connection);

// Throws bad_input when a table or a column is missing.
void check_schema(sqlite::Connection& connection);

}  // namespace ridgeline
