// Numbers of the report's tables, computed once more from the raw rows by SQL and arithmetics.

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "base/error.h"
#include "support/report_tables.h"

namespace ridgeline::report {
namespace {

using testing::make;
using testing::one;
using testing::trial;
using testing::value;

// The store as SQLite sees it.
class RawRows {
 public:
  explicit RawRows(const std::filesystem::path& path) {
    if (sqlite3_open_v2(path.c_str(), &database_, SQLITE_OPEN_READONLY, nullptr) != SQLITE_OK) {
      fail("cannot open {}", path.string());
    }
  }
  ~RawRows() { sqlite3_close(database_); }
  RawRows(const RawRows&) = delete;
  RawRows& operator=(const RawRows&) = delete;

  [[nodiscard]] std::vector<double> column(const std::string& sql) const {
    sqlite3_stmt* statement = nullptr;
    if (sqlite3_prepare_v2(database_, sql.c_str(), -1, &statement, nullptr) != SQLITE_OK) {
      fail("{}: {}", sqlite3_errmsg(database_), sql);
    }
    std::vector<double> values;
    while (sqlite3_step(statement) == SQLITE_ROW) {
      values.push_back(sqlite3_column_double(statement, 0));
    }
    sqlite3_finalize(statement);
    return values;
  }
  [[nodiscard]] double number(const std::string& sql) const { return column(sql).at(0); }
  [[nodiscard]] double median(const std::string& sql) const {
    std::vector<double> values = column(sql);
    std::sort(values.begin(), values.end());
    const std::size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values.at(half) : 0.5 * (values.at(half - 1) + values.at(half));
  }

 private:
  sqlite3* database_ = nullptr;
};

TEST(ReportTables, NumbersAreThoseOfTheRawRows) {
  const RawRows raw(trial().path());
  const Data& data = trial().data();
  const std::string native =
      "(SELECT id FROM runs WHERE model = 'mnist_cnn' AND backend = 'native' AND item LIKE "
      "'speed/%')";
  const std::string gpu =
      "(SELECT id FROM runs WHERE model = 'mnist_cnn' AND backend = 'auto' AND item LIKE "
      "'speed/%')";
  const std::string training =
      "(SELECT id FROM runs WHERE backend = 'auto' AND command = 'train' AND learning_rate = 0.1)";
  const auto wall = [](const std::string& run) {
    return "SELECT wall_seconds FROM samples WHERE kind = 'measured' AND run = " + run;
  };
  const std::vector<std::string> native_row = {"mnist_cnn", "native"},
                                 gpu_row = {"mnist_cnn", "auto on cuda:0"},
                                 training_row = {"server", "0.1"};
  const auto near = [](double shown, double computed) {
    EXPECT_NEAR(shown, computed, 1e-9 * std::abs(computed));
  };
  const Table throughput = one(data, "throughput", {"speed"});
  // 1: samples a second are the batch over the median of the iterations.
  near(value(throughput, native_row, "throughput"), 64.0 / raw.median(wall(native)));
  // 2: of a device that queues them, over that of the queued ones.
  near(value(throughput, gpu_row, "throughput"),
       64.0 /
           raw.median("SELECT device_seconds FROM samples WHERE kind = 'queued' AND run = " + gpu));
  // 3: FLOP/s.
  near(value(throughput, native_row, "achieved"),
       1e-9 *
           raw.number("SELECT value FROM run_numbers WHERE name = 'training_flops' AND run = " +
                      native) /
           raw.median(wall(native)));
  // 4, 5: mean and maximum of the iterations.
  const Table iterations = one(data, "iterations", {"speed"});
  near(value(iterations, native_row, "mean"),
       1e3 * raw.number("SELECT avg(wall_seconds) FROM samples WHERE kind = 'measured' AND run = " +
                        native));
  near(value(iterations, native_row, "max"),
       1e3 * raw.number("SELECT max(wall_seconds) FROM samples WHERE kind = 'measured' AND run = " +
                        native));
  // 6: speed-up.
  near(value(one(data, "speedups", {"speed"}),
             {"mnist_cnn", "auto on cuda:0, on server", "native, on desk"}, "speed-up"),
       raw.median(wall(native)) / raw.median(wall(gpu)));
  // 7: the forward phase.
  near(value(one(data, "phases", {"speed"}), native_row, "forward"),
       1e3 * raw.median("SELECT forward_seconds FROM samples WHERE kind = 'split' AND run = " +
                        native));
  // 8, 9: epochs.
  const Table trainings = one(data, "training");
  near(value(trainings, training_row, "epoch"),
       raw.number("SELECT avg(seconds) FROM epochs WHERE epoch > 1 AND run = " + training));
  near(value(trainings, training_row, "max Acc@1"),
       100.0 * raw.number("SELECT max(test_accuracy) FROM epochs WHERE run = " + training));
  // 10: bytes.
  near(
      value(one(data, "memory", {"speed"}), gpu_row, "planned"),
      1e-6 * raw.number("SELECT sum(bytes) FROM memory WHERE source = 'planned' AND run = " + gpu));
  // 11: a sensor's mean over the whole run.
  near(
      value(make(data, "resources", {"speed"})[0], gpu_row, "GPU"),
      raw.number("SELECT avg(value) FROM readings WHERE sensor = 'gpu_utilisation_percent' AND run "
                 "= " +
                 gpu));
  // 12: matrix products of a profile.
  near(value(one(data, "operations", {"profile"}), {"matrix multiplication"}, "native, on desk"),
       1e3 * raw.number("SELECT sum(seconds) FROM steps WHERE ops = 'linear' AND run = (SELECT id "
                        "FROM runs WHERE command = 'profile' AND backend = 'native')"));
}

}  // namespace
}  // namespace ridgeline::report
