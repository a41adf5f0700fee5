#pragma once

// What the parts of the store share: statements that take part in a transaction of the caller's.

#include <memory>
#include <span>

#include "store/rows.h"
#include "store/store.h"

namespace ridgeline {

struct Store::Database {
  std::unique_ptr<sqlite::Connection> connection;
  bool writable = false;

  void insert_environment(const EnvironmentRecord& environment);
  void insert_network(const NetworkRecord& network);
  RunId insert_run(const RunRecord& run);
  // Those of the run's numbers and notes that it has already are replaced.
  void set_values(RunId run, const std::map<std::string, double>& numbers,
                  const std::map<std::string, std::string>& notes);
  // True: there is such a run.
  bool set_end(RunId run, RunStatus status, const std::string& error, const std::string& finished);
  void put_study(const StudyRecord& study);
  void put_items(std::span<const StudyItemRecord> items);
  void replace_ceilings(const std::string& environment, const std::string& device,
                        std::span<const Ceiling> ceilings);

  // What the body writes: all or nothing of it.
  template <typename Body>
  void change(Body&& body) {
    sqlite::Transaction transaction(*connection);
    body();
    transaction.commit();
  }

  // One row; `into` is the beginning of the statement up to the table's name.
  template <typename Record>
  void insert(std::string_view into, const Record& record, std::string_view conflict = {}) {
    sqlite::Statement& statement =
        connection->prepared(fmt::format("{} ({}) VALUES ({}) {}", into, quoted_fields<Record>(),
                                         placeholders(field_names<Record>().size()), conflict));
    (void)bind_row(statement, 1, record);
    statement.run();
  }

  // All rows; `from` names the table and says which and in what order.
  template <typename Record, typename... Values>
  [[nodiscard]] std::vector<Record> select(std::string_view from, const Values&... values) {
    sqlite::Statement& statement =
        connection->prepared(fmt::format("SELECT {} FROM {}", quoted_fields<Record>(), from));
    statement.with(values...);
    std::vector<Record> all;
    while (statement.step()) read_row(statement, 0, all.emplace_back());
    return all;
  }

  // The first column of the first row; 0 where there is none.
  template <typename... Values>
  [[nodiscard]] std::int64_t number(const std::string& sql, const Values&... values) {
    sqlite::Statement& statement = connection->prepared(sql).with(values...);
    const std::int64_t found = statement.step() ? statement.integer(0) : 0;
    statement.reset();
    return found;
  }

  template <typename Row>
  [[nodiscard]] std::int64_t row_count(RunId run) {
    return number(
        fmt::format("SELECT coalesce(max(\"number\") + 1, 0) FROM \"{}\" WHERE \"run\" = ?",
                    row_table<Row>),
        run);
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
    return select<Row>(fmt::format("\"{}\" WHERE \"run\" = ? ORDER BY \"number\"", row_table<Row>),
                       run);
  }
};

}  // namespace ridgeline
