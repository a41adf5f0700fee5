// JSON: one object a line, an array of objects, or an object that holds one; and traces.

#include <algorithm>
#include <nlohmann/json.hpp>

#include "audit/read/read.h"
#include "audit/read/trace.h"
#include "base/error.h"
#include "base/text.h"

namespace ridgeline::audit {
namespace {

using Json = nlohmann::json;

constexpr int kDeepest = 4;

// Rows whose columns come up as they are met.
class RowBuilder {
 public:
  RowBuilder(RawTable& table, std::size_t bytes) : table_(table), bytes_(bytes) {}

  void add(const Json& object, std::int64_t line) {
    refuse_sparse(table_, bytes_);
    if (!object.is_object()) {
      bad_input("{}, line {}: expected an object with names and values", table_.file, line);
    }
    add_members(object, "", line, 0);
    table_.lines.push_back(line);
    for (RawColumn& column : table_.columns) {
      if (column.size() < table_.rows()) column.add_empty();
    }
    if (table_.rows() > kMostRows) {
      bad_input("{}: has more than {} rows", table_.file, count_text(kMostRows));
    }
  }

 private:
  void add_members(const Json& object, const std::string& before, std::int64_t line, int depth) {
    for (const auto& [key, value] : object.items()) {
      const std::string name = before + key;
      if (value.is_object() && depth < kDeepest) {
        add_members(value, name + '.', line, depth + 1);
      } else {
        add_value(column_of(name, line), value);
      }
    }
  }

  void add_value(RawColumn& column, const Json& value) const {
    if (column.size() > table_.rows()) return;  // the same name twice: the first counts
    if (value.is_boolean()) return column.add_words(value.get<bool>() ? "true" : "false");
    if (value.is_number()) return column.add_number(value.get<double>());
    if (value.is_string()) return add_cell(column, value.get_ref<const std::string&>(), false);
    column.add_empty();
  }

  RawColumn& column_of(const std::string& name, std::int64_t line) {
    const auto found = index_.find(name);
    if (found != index_.end()) return table_.columns[found->second];
    if (table_.columns.size() == kMostColumns) {
      bad_input("{}, line {}: has more than {} columns, so it is no table of results", table_.file,
                line, count_text(kMostColumns));
    }
    index_[name] = table_.columns.size();
    RawColumn& column = table_.columns.emplace_back();
    column.name = name;
    for (std::size_t row = 0; row < table_.rows(); ++row) column.add_empty();
    return column;
  }

  RawTable& table_;
  std::size_t bytes_;
  std::unordered_map<std::string, std::size_t> index_;
};

bool is_rows(const Json& value) {
  return value.is_array() && !value.empty() && value.front().is_object();
}

// The longest array of objects within an object; null: none.
const Json* rows_within(const Json& object) {
  const Json* best = nullptr;
  for (const Json& value : object) {
    if (is_rows(value) && (best == nullptr || value.size() > best->size())) best = &value;
  }
  return best;
}

RawTable parse_lines(std::string_view text, const std::string& file) {
  RawTable table{.file = file, .format = "JSON lines", .columns = {}, .lines = {}, .origins = {}};
  RowBuilder rows(table, text.size());
  for (std::int64_t line = 1; !text.empty(); ++line) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view one = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (one.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const Json value = Json::parse(one, nullptr, false);
    if (value.is_discarded()) {
      bad_input("{}, line {}: is no JSON; expected one object a line, or an array of objects", file,
                line);
    }
    rows.add(value, line);
  }
  return table;
}

}  // namespace

RawTable parse_json(std::string_view text, const std::string& file) {
  const Json value = Json::parse(text, nullptr, false);
  if (value.is_discarded()) return parse_lines(text, file);
  if (is_trace(value)) return trace_table(value, file);
  const Json* rows = value.is_array() ? &value : rows_within(value);
  RawTable table{.file = file, .format = "JSON", .columns = {}, .lines = {}, .origins = {}};
  RowBuilder builder(table, text.size());
  if (rows == nullptr) {
    builder.add(value, 1);
  } else {
    std::int64_t number = 0;
    for (const Json& row : *rows) builder.add(row, ++number);
  }
  return table;
}

}  // namespace ridgeline::audit
