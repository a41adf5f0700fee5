#pragma once

// Tables made from stores by hand, and their cells found by what stands in them.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "report/exhibits.h"
#include "support/report_store.h"

namespace ridgeline::testing {

using report::Cell;
using report::Data;
using report::ExhibitInput;
using report::RunView;
using report::Table;
using report::TableColumn;
using report::TableKind;

// A store in a file of its own, and the data read from it.
class TempStore {
 public:
  explicit TempStore(const std::string& name, const std::function<void(Store&)>& fill)
      : path_(std::filesystem::temp_directory_path() /
              ("ridgeline-tables-" + name + "-" + new_uuid() + ".db")) {
    store_ = std::make_unique<Store>(path_);
    fill(*store_);
    data_ = std::make_unique<Data>(*store_);
  }
  ~TempStore() {
    data_.reset();
    store_.reset();
    for (const char* end : {"", "-wal", "-shm"}) {
      std::filesystem::remove(path_.string() + end);
    }
  }
  TempStore(const TempStore&) = delete;
  TempStore& operator=(const TempStore&) = delete;

  [[nodiscard]] const Data& data() const { return *data_; }
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  std::unique_ptr<Store> store_;
  std::unique_ptr<Data> data_;
};

// The store of write_report_store(), made once.
inline const TempStore& trial() {
  static const TempStore store("trial", write_report_store);
  return store;
}

inline std::vector<Table> make(const Data& data, std::string_view name,
                               const std::set<std::string>& parts = {}) {
  ExhibitInput input{data, "x-" + std::string(name), "", {}};
  for (const RunView& run : data.runs()) {
    if (parts.empty() || parts.contains(run.part)) input.runs.push_back(&run);
  }
  for (const TableKind& kind : report::table_kinds()) {
    if (kind.name == name) return kind.make(input);
  }
  ADD_FAILURE() << "no table " << name;
  return {};
}

inline Table one(const Data& data, std::string_view name, const std::set<std::string>& parts = {}) {
  std::vector<Table> tables = make(data, name, parts);
  EXPECT_EQ(tables.size(), 1U) << name;
  return tables.empty() ? Table{} : tables[0];
}

inline std::size_t column_of(const Table& table, const std::string& title,
                             const std::string& unit = "") {
  for (std::size_t c = 0; c < table.columns.size(); ++c) {
    if (table.columns[c].title == title && (unit.empty() || table.columns[c].unit == unit))
      return c;
  }
  ADD_FAILURE() << "no column " << title << " in " << table.id;
  return 0;
}

inline bool has_column(const Table& table, const std::string& title) {
  return std::any_of(table.columns.begin(), table.columns.end(),
                     [&](const TableColumn& column) { return column.title == title; });
}

// The row whose cells have these texts somewhere.
inline const std::vector<Cell>& row_of(const Table& table, const std::vector<std::string>& texts) {
  static const std::vector<Cell> none(40);
  for (const std::vector<Cell>& row : table.rows) {
    const bool fits = std::all_of(texts.begin(), texts.end(), [&](const std::string& text) {
      return std::any_of(row.begin(), row.end(),
                         [&](const Cell& cell) { return cell.text == text; });
    });
    if (fits) return row;
  }
  ADD_FAILURE() << "no such row in " << table.id << ": " << texts[0];
  return none;
}

inline double value(const Table& table, const std::vector<std::string>& texts,
                    const std::string& title, const std::string& unit = "") {
  const Cell& cell = row_of(table, texts)[column_of(table, title, unit)];
  EXPECT_TRUE(cell.value) << title << " of " << texts[0] << " in " << table.id;
  return cell.value.value_or(std::nan(""));
}

inline std::string notes_of(const Table& table, const Cell& cell) {
  std::string text;
  for (const std::size_t note : cell.notes) text += table.notes.at(note) + "\n";
  return text;
}

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace ridgeline::testing
