#pragma once

// A test with a folder of stores.

#include <filesystem>
#include <string>

#include "store/field_json.h"
#include "store/rows.h"
#include "support/data_files.h"

namespace ridgeline::testing {

class StoreTest : public FileTest {
 protected:
  [[nodiscard]] std::filesystem::path path(const std::string& name = "r.db") const {
    return folder_ / name;
  }
};

// A row as text: equal text, equal fields.
template <typename Row>
std::string words(const Row& row) {
  std::string text;
  visit_fields(row, [&](std::string_view name, const auto& field) {
    text += fmt::format("{}={} ", name, value_json(field).dump());
  });
  return text;
}

}  // namespace ridgeline::testing
