#pragma once

#include <cctype>
#include <string>

namespace ridgeline::testing {

// A name as GoogleTest allows it in a parametrised test: letters, digits and underscores.
[[nodiscard]] inline std::string test_name(std::string name) {
  for (char& c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0) c = '_';
  }
  return name;
}

}  // namespace ridgeline::testing
