#pragma once

// Tables as publications print them, made long: one row for one configuration.

#include "audit/read/raw_table.h"

namespace ridgeline::audit {

// A table whose first column names measures ("throughput (img/s)") and whose other columns are
// configurations is turned. Others stay as they are.
[[nodiscard]] RawTable turned(RawTable raw);

// A table with columns such as "T4 (img/s)" and "CPU (img/s)", "batch 32 (ms)" and "batch 64 (ms)",
// or "fp32" and "fp16", or all of it at once, gets a row for each device, batch and precision.
// Others stay as they are, and so do tables whose columns differ by something else as well.
[[nodiscard]] RawTable made_long(RawTable raw);

}  // namespace ridgeline::audit
