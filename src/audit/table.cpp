#include "audit/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <map>

#include "analysis/stats/summary.h"
#include "audit/facts.h"
#include "audit/reshape.h"
#include "base/error.h"
#include "base/suggest.h"

namespace ridgeline::audit {
namespace {

struct Assignment {
  Role role = Role::none;
  std::optional<Unit> unit;
  std::string why;
};

std::string folded(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

bool any_word(const RawColumn& column, bool (*fits)(const std::string& word)) {
  std::size_t seen = 0, fitting = 0;
  for (const std::string& word : column.dictionary()) {
    if (++seen > 50) break;
    fitting += fits(word) ? 1 : 0;
  }
  return fitting > 0 && 2 * fitting >= std::min<std::size_t>(seen, 50);
}

bool is_phase_word(const std::string& word) {
  const std::string lower = folded(word);
  return lower == "warmup" || lower == "warm-up" || lower == "measured";
}
bool is_precision_word(const std::string& word) {
  static constexpr std::array<std::string_view, 9> kNames = {
      "fp32", "fp16", "bf16", "tf32", "fp64", "amp", "float32", "float16", "bfloat16"};
  return std::ranges::find(kNames, folded(word)) != kNames.end();
}
// Names are short; a command line that holds one is none.
constexpr std::size_t kLongestName = 40;
bool is_model_word(const std::string& word) {
  return word.size() <= kLongestName && !zoo_name(word).empty();
}
bool is_device_word(const std::string& word) {
  return word.size() <= kLongestName && !device_kind(word).empty();
}

// What the cells alone tell, for columns whose titles tell nothing or too little.
Role role_by_content(const RawColumn& column, Role by_title) {
  if (column.word_count() == 0) return by_title;
  if ((by_title == Role::kind || by_title == Role::phase) && any_word(column, &is_phase_word)) {
    return Role::phase;
  }
  if (by_title == Role::phase) return Role::operation;
  if (by_title != Role::none) return by_title;
  if (any_word(column, &is_model_word)) return Role::model;
  if (any_word(column, &is_precision_word)) return Role::precision;
  if (column.dictionary().size() <= 20 && any_word(column, &is_device_word)) return Role::device;
  return Role::none;
}

std::vector<Assignment> assignments_of(const RawTable& raw, const std::vector<ColumnRule>& rules) {
  std::vector<Assignment> assignments;
  for (const RawColumn& column : raw.columns) {
    const Title title = read_title(column.name);
    Assignment one{role_of_title(title), title.unit, ""};
    if (one.role != Role::none) one.why = title.unit ? "name and unit" : "name";
    const Role content = role_by_content(column, one.role);
    if (content != one.role) one = {content, title.unit, "content"};
    for (const ColumnRule& rule : rules) {
      if (folded(rule.column) != folded(column.name)) continue;
      one = {rule.role, rule.unit ? rule.unit : title.unit, "--map"};
    }
    assignments.push_back(std::move(one));
  }
  return assignments;
}

bool has_role(const std::vector<Assignment>& assignments, Role role) {
  return std::ranges::any_of(assignments, [&](const Assignment& one) { return one.role == role; });
}

void demote(std::vector<Assignment>& assignments, Role role, Role to, const char* why) {
  for (Assignment& one : assignments) {
    if (one.role == role && one.why != "--map") {
      one.role = to;
      one.why = to == Role::none ? "" : why;
    }
  }
}

// Of several columns with one meaning, the one with the shortest title keeps it.
void keep_one(const RawTable& raw, std::vector<Assignment>& assignments, Role role) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < assignments.size(); ++i) {
    if (assignments[i].role != role) continue;
    const bool better = !best || assignments[i].why == "--map" ||
                        (raw.columns[i].name.size() < raw.columns[*best].name.size() &&
                         assignments[*best].why != "--map");
    if (better) {
      if (best) assignments[*best] = {};
      best = i;
    } else {
      assignments[i] = {};
    }
  }
}

// Whether a column that counts FLOPs has several values for one model: then it is a rate.
bool differs_within_model(const RawTable& raw, const std::vector<Assignment>& assignments,
                          const RawColumn& column) {
  const auto model = std::ranges::find(assignments, Role::model, &Assignment::role);
  if (model == assignments.end() || has_role(assignments, Role::image)) return false;
  const RawColumn& models = raw.columns[static_cast<std::size_t>(model - assignments.begin())];
  std::map<std::string, double> first;
  for (std::size_t row = 0; row < std::min<std::size_t>(raw.rows(), 1000); ++row) {
    if (!column.is_number(row)) continue;
    const auto [found, fresh] = first.emplace(models.text(row), column.number(row));
    if (!fresh && std::abs(found->second - column.number(row)) > 0.05 * std::abs(found->second)) {
      return true;
    }
  }
  return false;
}

// What a column means beside the others.
void settle(const RawTable& raw, std::vector<Assignment>& assignments) {
  if (has_role(assignments, Role::operation)) {
    // The row is a part of a step: its work and bytes are not the network's.
    for (const Role role : {Role::flops, Role::macs, Role::memory, Role::intensity,
                            Role::batch_time, Role::flop_rate}) {
      demote(assignments, role, role == Role::batch_time ? Role::time : Role::none, "content");
    }
  } else if (has_role(assignments, Role::iteration)) {
    demote(assignments, Role::time, Role::batch_time, "beside the iteration");
  } else if (has_role(assignments, Role::epoch)) {
    demote(assignments, Role::time, Role::epoch_time, "beside the epoch");
  }
  // A step taken apart: "runtime" is that of CUDA, not of the training.
  if (has_role(assignments, Role::kernel_time)) {
    demote(assignments, Role::total_time, Role::none, "");
  }
  for (std::size_t i = 0; i < assignments.size(); ++i) {
    Assignment& one = assignments[i];
    if (one.role == Role::flops && one.why != "--map" &&
        differs_within_model(raw, assignments, raw.columns[i])) {
      one.role = Role::flop_rate;
      one.why = "differs between rows of one model";
    }
  }
  for (const RoleInfo& info : all_roles()) {
    const bool many = info.role == Role::none || info.role == Role::device ||
                      info.role == Role::condition || info.role == Role::memory ||
                      info.role == Role::utilisation || info.role == Role::operation ||
                      info.role == Role::backend || info.role == Role::run ||
                      info.role == Role::time || info.role == Role::speedup ||
                      info.role == Role::speedup_low || info.role == Role::speedup_high;
    if (!many) keep_one(raw, assignments, info.role);
  }
}

std::pair<double, double> range_of(const RawColumn& column) {
  double low = 0.0, high = 0.0;
  bool first = true;
  for (std::size_t row = 0; row < column.size(); ++row) {
    if (!column.is_number(row)) continue;
    low = first ? column.number(row) : std::min(low, column.number(row));
    high = first ? column.number(row) : std::max(high, column.number(row));
    first = false;
  }
  return {low, high};
}

// The unit of numbers that have none, by what is usual for such values.
Unit usual_unit(Role role, const RawColumn& column) {
  const auto [low, high] = range_of(column);
  const auto of = [](const char* name, double scale) {
    return Unit{fmt::format("{}, assumed", name), Dimension::none, scale};
  };
  switch (info_of(role).dimension) {
    case Dimension::share:
      return high > 1.5 ? of("%", 0.01) : of("share", 1.0);
    case Dimension::time:
      return of("s", 1.0);
    case Dimension::bytes:
      return high < 1e7 ? of("MB", 1e6) : of("bytes", 1.0);
    case Dimension::flops:
    case Dimension::macs:
    case Dimension::flop_rate:
      return high < 1e5 ? of("G", 1e9) : of("1", 1.0);
    case Dimension::bandwidth:
      return high < 1e5 ? of("GB/s", 1e9) : of("B/s", 1.0);
    default:
      break;
  }
  if (role == Role::parameters && high < 2000.0) return of("M", 1e6);
  return Unit{"", Dimension::none, 1.0};
}

bool fits_role(const Unit& unit, Role role) {
  const Dimension wanted = info_of(role).dimension;
  return wanted == unit.dimension || unit.dimension == Dimension::multiple ||
         (wanted == Dimension::flop_rate && unit.dimension == Dimension::flops) ||
         (wanted == Dimension::flops && unit.dimension == Dimension::macs) ||
         (wanted == Dimension::share && unit.dimension == Dimension::ratio) ||
         role == Role::deviation || role == Role::parameters;
}

Column numbers_of(const RawColumn& raw, const Assignment& assignment) {
  Column column;
  const Unit unit = assignment.unit && fits_role(*assignment.unit, assignment.role)
                        ? *assignment.unit
                        : usual_unit(assignment.role, raw);
  column.unit = raw.number_count() == 0 && !assignment.unit ? "in the cells" : unit.name;
  column.scale = unit.scale;
  // Each word once: "13 h" has a unit of its own.
  std::vector<double> of_word(raw.dictionary().size(), kNothing);
  for (std::size_t i = 0; i < of_word.size(); ++i) {
    if (const auto quantity = find_quantity(raw.dictionary()[i])) {
      of_word[i] =
          quantity->dimension == Dimension::none ? quantity->value * unit.scale : quantity->value;
    }
  }
  column.values.reserve(raw.size());
  for (std::size_t row = 0; row < raw.size(); ++row) {
    if (raw.is_number(row) || raw.is_empty(row)) {
      column.values.push_back(raw.number(row) * unit.scale);
      continue;
    }
    column.values.push_back(of_word[raw.word_index(row)]);
    if (std::isnan(column.values.back()) && column.bad.size() < 1000) {
      column.bad.push_back({row, std::string(raw.words(row))});
    }
  }
  return column;
}

Column words_of(const RawColumn& raw) {
  Column column;
  column.words = {""};
  for (const std::string& word : raw.dictionary()) column.words.push_back(word);
  std::map<double, std::uint32_t> numbers;
  column.codes.reserve(raw.size());
  for (std::size_t row = 0; row < raw.size(); ++row) {
    if (raw.is_empty(row)) {
      column.codes.push_back(0);
    } else if (raw.is_number(row)) {
      const auto [found, fresh] =
          numbers.emplace(raw.number(row), static_cast<std::uint32_t>(column.words.size()));
      if (fresh) column.words.push_back(raw.text(row));
      column.codes.push_back(found->second);
    } else {
      column.codes.push_back(static_cast<std::uint32_t>(raw.word_index(row)) + 1);
    }
  }
  return column;
}

void check_rules(const RawTable& raw, const std::vector<ColumnRule>& rules) {
  std::vector<std::string_view> names;
  for (const RawColumn& column : raw.columns) names.emplace_back(column.name);
  for (const ColumnRule& rule : rules) {
    const bool there = std::ranges::any_of(
        names, [&](std::string_view name) { return folded(name) == folded(rule.column); });
    if (!there) {
      bad_input("--map {}: {} has no such column{}", rule.column, raw.file,
                did_you_mean(rule.column, names));
    }
  }
}

std::vector<std::uint64_t> row_hashes(const RawTable& raw) {
  std::vector<std::uint64_t> hashes(raw.rows(), 0);
  for (const RawColumn& column : raw.columns) {
    for (std::size_t row = 0; row < raw.rows(); ++row) {
      const std::uint64_t cell = column.is_number(row)
                                     ? std::bit_cast<std::uint64_t>(column.number(row))
                                     : std::hash<std::string_view>{}(column.words(row));
      hashes[row] = (hashes[row] ^ cell) * 0x9E3779B97F4A7C15ULL + (hashes[row] >> 29U);
    }
  }
  return hashes;
}

// How throughput x time / batch lies in most rows; nothing where a column is missing.
std::optional<double> usual_product(const Table& table, const Column& time) {
  const Column* rate = table.find(Role::throughput);
  const Column* batch = table.find(Role::batch);
  if (rate == nullptr || batch == nullptr) return std::nullopt;
  std::vector<double> products;
  for (std::size_t row = 0; row < std::min<std::size_t>(table.rows(), 1000); ++row) {
    const double product = rate->value(row) * time.value(row) / batch->value(row);
    if (std::isfinite(product)) products.push_back(product);
  }
  if (products.empty()) return std::nullopt;
  return median_of(products);
}

// A time of nothing in particular is an iteration's where throughput and batch say so; and without
// a unit it is in milliseconds where they do.
void settle_times(Table& table) {
  for (Column& column : table.columns) {
    if (column.role != Role::batch_time && column.role != Role::time) continue;
    const auto product = usual_product(table, column);
    if (!product) continue;
    const bool milli = *product > 500.0 && *product < 2000.0 && column.unit.ends_with("assumed");
    if (column.role == Role::time && (milli || (*product > 0.5 && *product < 2.0))) {
      column.role = Role::batch_time;
      column.why += ", throughput and batch";
    }
    if (!milli) continue;
    column.unit = "ms, by throughput and batch";
    column.scale = 1e-3;
    for (double& value : column.values) value *= 1e-3;
  }
}

}  // namespace

double Column::rounding(std::size_t row) const {
  const double value = std::abs(values[row] / scale);
  if (!(value > 0.0)) return 0.0;
  double digit = 1.0;
  for (int digits = 0; digits < 9; ++digits, digit /= 10.0) {
    const double steps = value / digit;
    if (std::abs(steps - std::round(steps)) < 1e-6 * std::max(1.0, steps)) break;
  }
  return 0.5 * digit / value;
}

const Column* Table::find(Role role) const {
  const auto found = std::ranges::find(columns, role, &Column::role);
  return found == columns.end() ? nullptr : &*found;
}

std::vector<const Column*> Table::all(Role role) const {
  std::vector<const Column*> found;
  for (const Column& column : columns) {
    if (column.role == role) found.push_back(&column);
  }
  return found;
}

std::optional<double> Table::number(Role role, std::size_t row) const {
  for (const Column& column : columns) {
    if (column.role == role && !column.is_words() && column.has(row)) return column.value(row);
  }
  return std::nullopt;
}

std::string Table::word(Role role, std::size_t row) const {
  for (const Column& column : columns) {
    if (column.role == role && column.is_words() && column.has(row)) return column.word(row);
  }
  return {};
}

ColumnRule parse_rule(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    bad_input("--map '{}': expected COLUMN=ROLE or COLUMN=ROLE:UNIT, such as 't=batch-time:ms'",
              text);
  }
  ColumnRule rule{.column = text.substr(0, equals), .role = Role::none, .unit = {}};
  std::string role = text.substr(equals + 1);
  if (const std::size_t colon = role.find(':'); colon != std::string::npos) {
    rule.unit = find_unit(role.substr(colon + 1));
    if (!rule.unit) bad_input("--map '{}': unknown unit '{}'", text, role.substr(colon + 1));
    role.resize(colon);
  }
  rule.role = role_named(role);
  return rule;
}

Table interpret(RawTable raw, const std::vector<ColumnRule>& rules) {
  // A rule speaks of the file's own columns: then the table stays as it is.
  if (rules.empty()) raw = made_long(turned(std::move(raw)));
  check_rules(raw, rules);
  std::vector<Assignment> assignments = assignments_of(raw, rules);
  settle(raw, assignments);
  std::vector<std::uint64_t> hashes = row_hashes(raw);
  Table table{.file = raw.file,
              .format = raw.format,
              .columns = {},
              .lines = std::move(raw.lines),
              .origins = std::move(raw.origins),
              .hashes = std::move(hashes)};
  for (std::size_t i = 0; i < assignments.size(); ++i) {
    const Role role = assignments[i].role;
    // A column without a meaning is named, and its cells are left out.
    Column column;
    if (role != Role::none) {
      column = info_of(role).words ? words_of(raw.columns[i])
                                   : numbers_of(raw.columns[i], assignments[i]);
    }
    column.name = raw.columns[i].name;
    column.role = role;
    column.why = assignments[i].why;
    table.columns.push_back(std::move(column));
  }
  settle_times(table);
  if (std::ranges::all_of(table.columns,
                          [](const Column& column) { return column.role == Role::none; })) {
    bad_input(
        "{}: none of its columns has a known meaning; --map COLUMN=ROLE tells it, and "
        "--roles lists the roles",
        table.file);
  }
  return table;
}

std::string device_kind(std::string_view words) {
  static constexpr std::array<std::string_view, 9> kCpu = {
      "cpu", "xeon", "epyc", "ryzen", "i9", "i7", "i5", "numpy", "threadripper"};
  static constexpr std::array<std::string_view, 20> kGpu = {
      "gpu",  "cuda", "mps",  "cupy", "rtx", "gtx",   "tesla",  "geforce", "t4",   "v100",
      "a100", "h100", "h200", "b200", "l4",  "a6000", "mi300x", "3060",    "4090", "5090"};
  const Title title = read_title(words);
  const std::string padded = ' ' + title.words + ' ';
  const auto has = [&](std::string_view word) {
    return padded.find(' ' + std::string(word) + ' ') != std::string::npos;
  };
  if (std::ranges::any_of(kCpu, has)) return "cpu";
  if (std::ranges::any_of(kGpu, has)) return "gpu";
  return {};
}

}  // namespace ridgeline::audit
