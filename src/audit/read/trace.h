#pragma once

// Traces in Chrome's format, as PyTorch's profiler (kineto) writes them. A trace becomes a table
// with one row for each training step: how long the host spent on it, how long the device computed,
// and how long the device was still at work when the host's step had ended.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "audit/read/raw_table.h"

namespace ridgeline::audit {

[[nodiscard]] bool is_trace(const nlohmann::json& value);

// Bad_input where the trace has neither steps nor kernels.
[[nodiscard]] RawTable trace_table(const nlohmann::json& trace, const std::string& file);

}  // namespace ridgeline::audit
