#pragma once

// What the parts of the store share: statements that take part in a transaction of the caller's.

#include <memory>
#include <span>

#include "lab/store/rows.h"
#include "lab/store/store.h"

namespace ridgeline {

struct Store::Database {
  std::unique_ptr<sqlite::Connection> connection;
  bool writable = false;

  void insert_environment(const EnvironmentRecord& environment);
  void insert_network(const NetworkRecord& network);
  RunId insert_run(const RunRecord& run);
  void set_numbers(RunId run, const std::map<std::string, double>& numbers);
  void set_notes(RunId run, const std::map<std::string, std::string>& notes);
  void put_study(const StudyRecord& study);
  void put_items(std::span<const StudyItemRecord> items);
  void replace_ceilings(const std::string& environment, const std::string& device,
                        std::span<const Ceiling> ceilings);

  template <typename Row>
  [[nodiscard]] std::int64_t row_count(RunId run) {
    static const std::string sql = fmt::format(
        "SELECT coalesce(max(\"number\") + 1, 0) FROM \"{}\" WHERE \"run\" = ?", row_table<Row>);
    sqlite::Statement& statement = connection->prepared(sql);
    statement.bind(1, run);
    const std::int64_t count = statement.step() ? statement.integer(0) : 0;
    statement.reset();
    return count;
  }

  // Behind those that the run has.
  template <typename Row>
  void append_rows(RunId run, std::span<const Row> rows) {
    static const std::string sql =
        fmt::format("INSERT INTO \"{}\" (\"run\", \"number\", {}) VALUES ({})", row_table<Row>,
                    quoted_fields<Row>(), placeholders(field_names<Row>().size() + 2));
    std::int64_t number = row_count<Row>(run);
    sqlite::Statement& statement = connection->prepared(sql);
    for (const Row& row : rows) {
      statement.bind(1, run);
      statement.bind(2, number++);
      (void)bind_row(statement, 3, row);
      statement.run();
    }
  }

  template <typename Row>
  [[nodiscard]] std::vector<Row> rows(RunId run) {
    static const std::string sql =
        fmt::format("SELECT {} FROM \"{}\" WHERE \"run\" = ? ORDER BY \"number\"",
                    quoted_fields<Row>(), row_table<Row>);
    sqlite::Statement& statement = connection->prepared(sql);
    statement.reset();
    statement.bind(1, run);
    std::vector<Row> all;
    while (statement.step()) read_row(statement, 0, all.emplace_back());
    return all;
  }
};

}  // namespace ridgeline
