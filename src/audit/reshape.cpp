#include "audit/reshape.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "audit/roles.h"
#include "base/parse.h"

namespace ridgeline::audit {
namespace {

// Measures that columns stand side by side for.
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

// What is told beside a measure: "T4 std" belongs to "T4 (img/s)".
bool stands_beside(Role role) {
  switch (role) {
    case Role::deviation:
    case Role::utilisation:
    case Role::memory:
    case Role::power:
    case Role::efficiency:
    case Role::train_accuracy:
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

// "fp16", "amp"
std::string precision_in(const std::string& title) {
  static constexpr std::array<std::string_view, 6> kNames = {"fp64", "fp32", "tf32",
                                                             "bf16", "fp16", "amp"};
  const Title read = read_title(title);
  for (const std::string_view word : pieces_of(read.words, " ")) {
    if (std::ranges::find(kNames, word) != kNames.end()) return std::string(word);
  }
  return {};
}

void copy_cell(RawColumn& to, const RawColumn& from, std::size_t row, double factor = 1.0) {
  if (from.is_number(row)) return to.add_number(from.number(row) * factor);
  if (from.is_empty(row)) return to.add_empty();
  to.add_words(from.words(row));
}

// What the columns of one measure can differ by, and how a title tells it.
struct Axis {
  const char* column;  // the name of the new one
  std::string (*in)(const std::string& title);
  Role role;
};
constexpr std::array<Axis, 3> kAxes = {{{"device", &device_in, Role::device},
                                        {"batch", &batch_in, Role::batch},
                                        {"precision", &precision_in, Role::precision}}};
// What a title says of each axis; empty: nothing, or the axis is not used.
using Place = std::array<std::string, kAxes.size()>;

// A measure of a wide table: its name in the long one, and its columns.
struct Measure {
  Role role = Role::none;
  std::string name;
  std::optional<Unit> unit;
  std::map<Place, const RawColumn*> columns;
};

struct WideTable {
  std::array<bool, kAxes.size()> uses = {};
  std::vector<Place> places;  // by first appearance
  std::vector<const RawColumn*> shared;
  std::vector<Measure> measures;
};

// Axes by which columns of one measure differ, and that the table does not tell elsewhere.
std::array<bool, kAxes.size()> axes_of(const RawTable& raw) {
  std::array<bool, kAxes.size()> uses = {};
  for (std::size_t i = 0; i < kAxes.size(); ++i) {
    std::map<Role, std::set<std::string>> by_role;
    bool told = false;
    for (const RawColumn& column : raw.columns) {
      const Role role = role_of_title(read_title(column.name));
      const std::string value = kAxes[i].in(column.name);
      told = told || (role == kAxes[i].role && value.empty());
      if (!value.empty() && is_measure(role)) by_role[role].insert(value);
    }
    uses[i] = !told && std::ranges::any_of(
                           by_role, [](const auto& entry) { return entry.second.size() > 1; });
  }
  return uses;
}

// Nothing: no measure has several columns, or they differ by more than their titles tell.
std::optional<WideTable> wide_table(const RawTable& raw) {
  WideTable wide{.uses = axes_of(raw), .places = {}, .shared = {}, .measures = {}};
  const auto place_of = [&](const RawColumn& column) {
    Place place;
    for (std::size_t i = 0; i < kAxes.size(); ++i) {
      if (wide.uses[i]) place[i] = kAxes[i].in(column.name);
    }
    return place;
  };
  for (const RawColumn& column : raw.columns) {
    const Place place = place_of(column);
    if (place == Place() || !is_measure(role_of_title(read_title(column.name)))) continue;
    if (std::ranges::find(wide.places, place) == wide.places.end()) wide.places.push_back(place);
  }
  if (wide.places.empty()) return std::nullopt;
  for (const RawColumn& column : raw.columns) {
    const Title title = read_title(column.name);
    const Role role = role_of_title(title);
    const Place place = place_of(column);
    const bool placed = std::ranges::find(wide.places, place) != wide.places.end();
    if (!placed || (!is_measure(role) && !stands_beside(role))) {
      wide.shared.push_back(&column);
      continue;
    }
    auto measure = std::ranges::find(wide.measures, role, &Measure::role);
    if (measure == wide.measures.end()) {
      const std::string unit = title.unit ? fmt::format(" ({})", title.unit->name) : "";
      wide.measures.push_back(
          {role, fmt::format("{}{}", info_of(role).name, unit), title.unit, {}});
      measure = std::prev(wide.measures.end());
    }
    if (!measure->columns.emplace(place, &column).second) return std::nullopt;
  }
  return wide;
}

// Cells of a column in milliseconds, where the measure is in seconds, are a thousandth of it.
double factor_of(const RawColumn& column, const Measure& measure) {
  const std::optional<Unit> unit = read_title(column.name).unit;
  return unit && measure.unit ? unit->scale / measure.unit->scale : 1.0;
}

// Columns that all rows share; then the axes; then one for each measure.
RawTable long_table(const RawTable& raw, const WideTable& wide) {
  RawTable result{
      .file = raw.file, .format = raw.format, .columns = {}, .lines = {}, .origins = {}};
  for (const RawColumn* column : wide.shared) result.columns.emplace_back().name = column->name;
  for (std::size_t i = 0; i < kAxes.size(); ++i) {
    if (wide.uses[i]) result.columns.emplace_back().name = kAxes[i].column;
  }
  for (const Measure& measure : wide.measures) result.columns.emplace_back().name = measure.name;
  for (std::size_t row = 0; row < raw.rows(); ++row) {
    for (const Place& place : wide.places) {
      const bool any = std::ranges::any_of(wide.measures, [&](const Measure& measure) {
        const auto found = measure.columns.find(place);
        return found != measure.columns.end() && !found->second->is_empty(row);
      });
      if (!any) continue;
      auto to = result.columns.begin();
      for (const RawColumn* column : wide.shared) copy_cell(*to++, *column, row);
      for (std::size_t i = 0; i < kAxes.size(); ++i) {
        if (wide.uses[i]) add_cell(*to++, place[i], false);
      }
      for (const Measure& measure : wide.measures) {
        const auto found = measure.columns.find(place);
        if (found == measure.columns.end()) {
          (to++)->add_empty();
        } else {
          copy_cell(*to++, *found->second, row, factor_of(*found->second, measure));
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
  const std::optional<WideTable> wide = wide_table(raw);
  return wide ? long_table(raw, *wide) : raw;
}

}  // namespace ridgeline::audit
