#pragma once

// The description of a network as a JSON document.

#include <array>
#include <string>

#include "lab/describe.h"

namespace ridgeline {

// The memory categories as the ledger names them, in its order.
struct MemoryCategory {
  Role role;
  const char* title;
  const char* key;
};
inline constexpr std::array<MemoryCategory, 9> kMemoryCategories = {{
    {Role::parameter, "parameters", "parameters"},
    {Role::gradient, "gradients", "gradients"},
    {Role::optimizer_state, "optimizer state", "optimizer_state"},
    {Role::statistics, "statistics", "statistics"},
    {Role::input, "inputs", "inputs"},
    {Role::metric, "metrics", "metrics"},
    {Role::activation, "activations", "activations"},
    {Role::temporary, "temporaries", "temporaries"},
    {Role::workspace, "workspace", "workspace"},
}};

[[nodiscard]] std::int64_t memory_of(const BatchComplexity& batch, Role role);
[[nodiscard]] std::int64_t bytes_of(const Cost& cost);
[[nodiscard]] std::string image_text(const ModelConfig& model);

[[nodiscard]] std::string description_json(const Description& description, bool per_layer);

}  // namespace ridgeline
