#include "audit/reshape.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "audit/roles.h"
#include "base/parse.h"

namespace ridgeline::audit {
namespace {

bool is_measure(Role role) {
  switch (role) {
    case Role::batch_time:
    case Role::image_time:
    case Role::epoch_time:
    case Role::total_time:
    case Role::time:
    case Role::throughput:
    case Role::flop_rate:
    case Role::accuracy:
    case Role::final_accuracy:
    case Role::best_accuracy:
      return true;
    default:
      return false;
  }
}

// Words of a title that name a device or who computes there.
constexpr std::array<std::string_view, 36> kDeviceWords = {
    "cpu",    "gpu",  "cuda",       "mps",   "tpu",    "numpy", "cupy", "numba", "pytorch",
    "torch",  "jax",  "tensorflow", "rtx",   "laptop", "t4",    "v100", "a100",  "h100",
    "h200",   "b200", "l4",         "a6000", "3060",   "3090",  "4080", "4090",  "5090",
    "mi300x", "i5",   "i7",         "i9",    "m1",     "m2",    "m3",   "xeon",  "epyc"};

std::string device_in(const std::string& title) {
  std::string device;
  const Title read = read_title(title);
  for (const std::string_view word : pieces_of(read.words, " ")) {
    if (std::ranges::find(kDeviceWords, word) == kDeviceWords.end()) continue;
    if (!device.empty()) device += ' ';
    device += word;
  }
  return device;
}

// "batch 32", "b32", "bs32"
std::string batch_in(const std::string& title) {
  const Title read = read_title(title);
  std::string_view before;
  for (const std::string_view word : pieces_of(read.words, " ")) {
    if (before == "batch" && number_in<int>(word)) return std::string(word);
    for (const std::string_view prefix : {"b", "bs", "batch"}) {
      if (word.starts_with(prefix) && number_in<int>(word.substr(prefix.size()))) {
        return std::string(word.substr(prefix.size()));
      }
    }
    before = word;
  }
  return {};
}

void copy_cell(RawColumn& to, const RawColumn& from, std::size_t row) {
  if (from.is_number(row)) return to.add_number(from.number(row));
  if (from.is_empty(row)) return to.add_empty();
  to.add_words(from.words(row));
}

// What the columns differ by, and how a title tells it.
struct Axis {
  const char* column;  // the name of the new one
  std::string (*in)(const std::string& title);
  Role role;
};
constexpr std::array<Axis, 2> kAxes = {
    {{"device", &device_in, Role::device}, {"batch", &batch_in, Role::batch}}};

// The values of the axis, where two columns of one measure differ by it; empty: none do.
std::vector<std::string> axis_values(const RawTable& raw, const Axis& axis) {
  std::map<Role, std::set<std::string>> by_role;
  std::vector<std::string> values;
  for (const RawColumn& column : raw.columns) {
    const Role role = role_of_title(read_title(column.name));
    if (role == axis.role && axis.in(column.name).empty()) return {};
    const std::string value = axis.in(column.name);
    if (value.empty() || !is_measure(role)) continue;
    by_role[role].insert(value);
    if (std::ranges::find(values, value) == values.end()) values.push_back(value);
  }
  const bool wide =
      std::ranges::any_of(by_role, [](const auto& entry) { return entry.second.size() > 1; });
  return wide ? values : std::vector<std::string>{};
}

RawTable long_by(const RawTable& raw, const Axis& axis, const std::vector<std::string>& values) {
  RawTable result{
      .file = raw.file, .format = raw.format, .columns = {}, .lines = {}, .origins = {}};
  // Columns that all rows share; then the axis; then one for each measure.
  std::vector<const RawColumn*> shared;
  std::vector<Role> measures;
  std::map<std::pair<Role, std::string>, const RawColumn*> cells;
  std::map<Role, std::string> names;
  for (const RawColumn& column : raw.columns) {
    const Role role = role_of_title(read_title(column.name));
    const std::string value = axis.in(column.name);
    if (value.empty() || !is_measure(role)) {
      shared.push_back(&column);
      continue;
    }
    if (!names.contains(role)) {
      measures.push_back(role);
      const Title title = read_title(column.name);
      names[role] = fmt::format("{}{}", info_of(role).name,
                                title.unit ? fmt::format(" ({})", title.unit->name) : "");
    }
    cells.emplace(std::pair(role, value), &column);
  }
  for (const RawColumn* column : shared) result.columns.emplace_back().name = column->name;
  const std::size_t axis_at = result.columns.size();
  result.columns.emplace_back().name = axis.column;
  for (const Role role : measures) result.columns.emplace_back().name = names[role];
  for (std::size_t row = 0; row < raw.rows(); ++row) {
    for (const std::string& value : values) {
      const bool any = std::ranges::any_of(measures, [&](Role role) {
        const auto found = cells.find({role, value});
        return found != cells.end() && !found->second->is_empty(row);
      });
      if (!any) continue;
      for (std::size_t i = 0; i < shared.size(); ++i) {
        copy_cell(result.columns[i], *shared[i], row);
      }
      add_cell(result.columns[axis_at], value, false);
      for (std::size_t i = 0; i < measures.size(); ++i) {
        const auto found = cells.find({measures[i], value});
        RawColumn& to = result.columns[axis_at + 1 + i];
        if (found == cells.end()) {
          to.add_empty();
        } else {
          copy_cell(to, *found->second, row);
        }
      }
      result.lines.push_back(raw.lines[row]);
      result.origins.push_back(raw.origins[row]);
    }
  }
  return result;
}

bool names_measures(const RawTable& raw) {
  const RawColumn& first = raw.columns.front();
  if (first.word_count() != raw.rows() || raw.columns.size() < 3 || raw.rows() > 200) return false;
  std::size_t measures = 0;
  for (std::size_t row = 0; row < raw.rows(); ++row) {
    const Role role = role_of_title(read_title(first.words(row)));
    if (role != Role::none && !info_of(role).words) ++measures;
  }
  const bool titles_say_something =
      std::any_of(raw.columns.begin() + 1, raw.columns.end(), [](const RawColumn& column) {
        const Role role = role_of_title(read_title(column.name));
        return role != Role::none && role != Role::device;
      });
  return measures >= 2 && 2 * measures >= raw.rows() && !titles_say_something;
}

}  // namespace

RawTable turned(RawTable raw) {
  if (raw.columns.empty() || !names_measures(raw)) return raw;
  RawTable result{
      .file = raw.file, .format = raw.format, .columns = {}, .lines = {}, .origins = {}};
  result.columns.emplace_back().name = "configuration";
  for (std::size_t row = 0; row < raw.rows(); ++row) {
    result.columns.emplace_back().name = std::string(raw.columns.front().words(row));
  }
  for (std::size_t column = 1; column < raw.columns.size(); ++column) {
    add_cell(result.columns[0], raw.columns[column].name, false);
    for (std::size_t row = 0; row < raw.rows(); ++row) {
      copy_cell(result.columns[row + 1], raw.columns[column], row);
    }
    // A column of the file has no line: its number stands for it.
    result.lines.push_back(static_cast<std::int64_t>(column) + 1);
    result.origins.push_back(column - 1);
  }
  return result;
}

RawTable made_long(RawTable raw) {
  if (raw.rows() > 10'000) return raw;
  for (const Axis& axis : kAxes) {
    const std::vector<std::string> values = axis_values(raw, axis);
    if (!values.empty()) raw = long_by(raw, axis, values);
  }
  return raw;
}

}  // namespace ridgeline::audit
