// Tables of a store as columns.

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/compare/stored.h"
#include "capi/guard.h"
#include "store/field_json.h"
#include "store/store.h"

namespace ridgeline::capi {
namespace {

struct FrameColumn {
  std::string name, unit;
  rl_type type = RL_TEXT;
  std::vector<std::int64_t> integers;
  std::vector<double> reals;
  std::string bytes;                        // of texts
  std::vector<std::int64_t> offsets = {0};  // of texts
  std::vector<std::uint8_t> valid;

  void add(std::int64_t value) { integers.push_back(value), valid.push_back(1); }
  // What is no number is unknown, as in the store.
  void add(double value) { reals.push_back(value), valid.push_back(!std::isnan(value)); }
  void add(const std::optional<double>& value) { add(value.value_or(std::nan(""))); }
  void add(const std::string& value) {
    bytes += value;
    offsets.push_back(std::ssize(bytes));
    valid.push_back(1);
  }
};

template <typename Type>
constexpr rl_type type_of() {
  if constexpr (std::is_integral_v<Type>) return RL_INTEGER;
  if constexpr (std::same_as<Type, double> || std::same_as<Type, std::optional<double>>) {
    return RL_REAL;
  }
  return RL_TEXT;
}

template <typename Type>
void add_value(FrameColumn& column, const Type& value) {
  if constexpr (std::is_integral_v<Type>) {
    column.add(static_cast<std::int64_t>(value));
  } else if constexpr (type_of<Type>() == RL_REAL || std::same_as<Type, std::string>) {
    column.add(value);
  } else {
    // Names of enumerations and images as they are; lists and maps as JSON.
    const nlohmann::ordered_json json = value_json(value);
    column.add(json.is_string() ? json.get<std::string>() : json.dump());
  }
}

}  // namespace
}  // namespace ridgeline::capi

struct rl_frame {
  std::vector<ridgeline::capi::FrameColumn> columns;
  std::int64_t rows = 0;
};

namespace ridgeline::capi {
namespace {

FrameColumn& add_column(rl_frame& frame, std::string_view name, std::string_view unit,
                        rl_type type) {
  FrameColumn column;
  column.name = name;
  column.unit = unit;
  column.type = type;
  frame.columns.push_back(std::move(column));
  return frame.columns.back();
}

// A column for each field of a record.
template <typename Record>
void add_field_columns(rl_frame& frame) {
  std::apply(
      [&](const auto&... field) {
        (add_column(frame, field.name, field.unit,
                    type_of<std::remove_cvref_t<decltype(std::declval<Record>().*field.member)>>()),
         ...);
      },
      Fields<Record>::list);
}

// Puts the record's values into the columns that begin at `next`.
template <typename Record>
void add_fields(rl_frame& frame, std::size_t& next, const Record& record) {
  visit_fields(record, [&](std::string_view, const auto& value) {
    add_value(frame.columns[next++], value);
  });
}

// What the runs are, with a column for each number that one of them has.
void fill_runs(rl_frame& frame, const std::vector<RunRecord>& runs) {
  add_column(frame, "run", "", RL_INTEGER);
  add_field_columns<RunRecord>(frame);
  add_field_columns<Work>(frame);
  add_field_columns<Executor>(frame);
  std::set<std::string> numbers;
  for (const RunRecord& run : runs) {
    for (const auto& [name, value] : run.numbers) numbers.insert(name);
  }
  for (const std::string& name : numbers) add_column(frame, name, "", RL_REAL);
  for (const RunRecord& run : runs) {
    std::size_t next = 0;
    frame.columns[next++].add(run.id);
    add_fields(frame, next, run);  // with its work and its executor
    for (const std::string& name : numbers) {
      const auto found = run.numbers.find(name);
      frame.columns[next++].add(found == run.numbers.end() ? std::optional<double>()
                                                           : found->second);
    }
  }
  frame.rows = std::ssize(runs);
}

// The rows of one table, the number of their run in front.
template <typename Record>
void fill_rows(rl_frame& frame, const std::vector<RunRecord>& runs, const Store& store,
               std::vector<Record> (Store::*read)(RunId) const) {
  add_column(frame, "run", "", RL_INTEGER);
  add_field_columns<Record>(frame);
  for (const RunRecord& run : runs) {
    for (const Record& record : (store.*read)(run.id)) {
      std::size_t next = 0;
      frame.columns[next++].add(run.id);
      add_fields(frame, next, record);
      ++frame.rows;
    }
  }
}

// All that fit conditions, or the one that a name stands for.
std::vector<RunRecord> runs_of(const Store& store, const std::string& filter) {
  if (filter.empty()) return store.runs();
  if (filter.find('=') != filter.npos) return store.runs(parse_run_filter(filter));
  return {store.run(filter)};
}

using Fill = void (*)(rl_frame&, const std::vector<RunRecord>&, const Store&);
struct FrameTable {
  std::string_view name;
  Fill fill;
};

template <typename Record, std::vector<Record> (Store::*read)(RunId) const>
void fill_with(rl_frame& frame, const std::vector<RunRecord>& runs, const Store& store) {
  fill_rows<Record>(frame, runs, store, read);
}

constexpr FrameTable kTables[] = {{"runs", [](rl_frame& frame, const std::vector<RunRecord>& runs,
                                              const Store&) { fill_runs(frame, runs); }},
                                  {"samples", fill_with<Sample, &Store::samples>},
                                  {"epochs", fill_with<EpochRecord, &Store::epochs>},
                                  {"steps", fill_with<StepTime, &Store::steps>},
                                  {"readings", fill_with<Reading, &Store::readings>},
                                  {"memory", fill_with<MemoryEntry, &Store::memory>},
                                  {"findings", fill_with<Finding, &Store::findings>}};

std::unique_ptr<rl_frame> frame_of(const std::string& path, const std::string& table,
                                   const std::string& filter) {
  for (const FrameTable& known : kTables) {
    if (known.name != table) continue;
    const Store store = Store::open_existing(path);
    auto frame = std::make_unique<rl_frame>();
    known.fill(*frame, runs_of(store, filter), store);
    return frame;
  }
  bad_input("a store has no table '{}'", table);
}

}  // namespace
}  // namespace ridgeline::capi

using namespace ridgeline::capi;

int rl_store_table(const char* path, const char* table, const char* filter, rl_frame** frame) {
  return guarded([&] {
    *given(frame, "frame") = nullptr;
    *frame = frame_of(given(path, "path"), given(table, "table"), filter ? filter : "").release();
  });
}

int64_t rl_frame_rows(const rl_frame* frame) { return frame == nullptr ? 0 : frame->rows; }

int64_t rl_frame_columns(const rl_frame* frame) {
  return frame == nullptr ? 0 : std::ssize(frame->columns);
}

int rl_frame_column(const rl_frame* frame, int64_t index, rl_column* column) {
  return guarded([&] {
    if (index < 0 || index >= rl_frame_columns(given(frame, "frame"))) {
      ridgeline::bad_input("the frame has no column {}", index);
    }
    const FrameColumn& found = frame->columns[static_cast<std::size_t>(index)];
    const void* values = found.bytes.data();
    if (found.type == RL_INTEGER) values = found.integers.data();
    if (found.type == RL_REAL) values = found.reals.data();
    *given(column, "column") = {.name = found.name.c_str(),
                                .unit = found.unit.c_str(),
                                .type = found.type,
                                .values = values,
                                .offsets = found.type == RL_TEXT ? found.offsets.data() : nullptr,
                                .valid = found.valid.data()};
  });
}

void rl_frame_close(rl_frame* frame) { delete frame; }
