#pragma once

#include <string>
#include <string_view>

namespace ridgeline {

// What toml++ says about a text without its closing quote speaks of control characters: the end of
// the line is one. Other words of it stay as they are.
[[nodiscard]] inline std::string toml_trouble(std::string_view description) {
  const bool in_text = description.find("string") != std::string_view::npos;
  const bool ends = description.find("control characters") != std::string_view::npos ||
                    description.find("end-of-file") != std::string_view::npos;
  if (!in_text || !ends) return std::string(description);
  return "a text has no closing quote, or a control character in it (" + std::string(description) +
         ")";
}

}  // namespace ridgeline
