// Rows that are compared with each other: are they the same work, and does the ratio hold?

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "audit/checks/checks.h"
#include "audit/context.h"
#include "base/text.h"

namespace ridgeline::audit {
namespace {

// Pairs are looked at: tables beyond these sizes are no comparison that people made. Rows,
constexpr std::size_t kMostCompared = 3000;
// and times or ratios in one line.
constexpr std::size_t kMostSideBySide = 50;

std::string cell_text(const Column& column, std::size_t row) {
  if (!column.has(row)) return {};
  return column.is_words() ? column.word(row) : plain_number(column.value(row));
}

// What two rows that are compared must share. Who computes is what is compared.
bool must_agree(Role role) {
  switch (role) {
    case Role::batch:
    case Role::image:
    case Role::precision:
    case Role::dataset:
    case Role::classes:
    case Role::frozen:
    case Role::condition:
    case Role::kind:
      return true;
    default:
      return false;
  }
}

bool is_like(const Table& table, std::size_t a, std::size_t b) {
  return std::ranges::all_of(table.columns, [&](const Column& column) {
    const bool matters = must_agree(column.role) || column.role == Role::model ||
                         column.role == Role::operation || column.role == Role::phase;
    return !matters || cell_text(column, a) == cell_text(column, b);
  });
}

// "batch 128 and 64"
std::string difference(const Table& table, std::size_t a, std::size_t b) {
  std::vector<std::string> parts;
  for (const Column& column : table.columns) {
    if (!must_agree(column.role) && column.role != Role::model) continue;
    const std::string left = cell_text(column, a), right = cell_text(column, b);
    if (left != right) parts.push_back(fmt::format("{} {} and {}", column.name, left, right));
  }
  return joined(parts, ", ");
}

// How fast a row is, whatever tells it; nothing: nothing does.
struct Speed {
  double value = 0.0, rounding = 0.0;
};
std::optional<Speed> speed_of(const Table& table, std::size_t row) {
  const Column* rate = table.find(Role::throughput);
  if (rate != nullptr && rate->has(row) && rate->value(row) > 0.0) {
    return Speed{rate->value(row), rate->rounding(row)};
  }
  for (const Role role :
       {Role::batch_time, Role::time, Role::epoch_time, Role::total_time, Role::image_time}) {
    const Column* time = table.find(role);
    if (time != nullptr && time->has(row) && time->value(row) > 0.0) {
      return Speed{1.0 / time->value(row), time->rounding(row)};
    }
  }
  return std::nullopt;
}

// "resnet18, T4: a speed-up of 2.8"; with its column, where there are several.
std::string claim_text(const Context& context, const Column& claims, std::size_t row) {
  const bool several = context.table().all(Role::speedup).size() > 1;
  return fmt::format("{}: a speed-up of {}{}", context.label(row), plain_number(claims.value(row)),
                     several ? fmt::format(" ({})", claims.name) : "");
}

struct Match {
  std::size_t row;
  double ratio;
};

void judge_speedup(const Context& context, const Column& claims, std::size_t row,
                   Findings& findings) {
  const Table& table = context.table();
  const double claimed = claims.value(row);
  const auto own = speed_of(table, row);
  if (!own || near(claimed, 1.0, 0.005)) return;
  std::optional<Match> like, unlike, expected;
  for (std::size_t other = 0; other < table.rows(); ++other) {
    const auto speed = speed_of(table, other);
    if (other == row || !speed || context.executor(other) == context.executor(row)) continue;
    const double ratio = own->value / speed->value;
    const double allowed = 0.03 + own->rounding + speed->rounding + claims.rounding(row);
    const bool same_work = is_like(table, row, other);
    const bool fits = near(claimed, ratio, allowed) || near(claimed, 1.0 / ratio, allowed);
    if (fits) (same_work ? like : unlike) = Match{other, ratio};
    if (same_work && !expected) expected = Match{other, ratio};
  }
  if (like) return;
  const std::string claim = claim_text(context, claims, row);
  if (unlike) {
    findings.push_back(
        found("speed-up", Severity::error, Confidence::likely,
              fmt::format("{} is the ratio to {}, which is other work: {}", claim,
                          context.label(unlike->row), difference(table, row, unlike->row)),
              "compare rows of the same work", {row, unlike->row}));
  } else if (expected) {
    const double ratio = expected->ratio >= 1.0 ? expected->ratio : 1.0 / expected->ratio;
    findings.push_back(found("speed-up", Severity::error, Confidence::likely,
                             fmt::format("{}, but the ratio to {} is {}", claim,
                                         context.label(expected->row), plain_number(ratio)),
                             "", {row, expected->row}));
  }
}

// The column with an end of the claim's interval, "speed-up of T4 low"; null: there is none.
const Column* end_of(const Table& table, const Column& claims, Role role, const char* word) {
  const std::string words = read_title(claims.name).words + word;
  for (const Column* column : table.all(role)) {
    if (read_title(column->name).words == words) return column;
  }
  return nullptr;
}

// Two times of nothing in particular beside a ratio, "A (ms)" and "B (ms)": the ratio is theirs.
// False: the line has no such times.
bool judge_by_columns(const Context& context, const Column& claims, std::size_t row,
                      Findings& findings) {
  const Table& table = context.table();
  const std::vector<const Column*> times = table.all(Role::time);
  if (times.size() < 2 || times.size() > kMostSideBySide) return false;
  // Ratios of pairs, which have intervals, are not the ratio of medians on a noisy machine.
  const Column* low = end_of(table, claims, Role::speedup_low, " low");
  const Column* high = end_of(table, claims, Role::speedup_high, " high");
  const bool interval = low != nullptr && high != nullptr && low->has(row) && high->has(row);
  std::string ratios;
  for (const Column* a : times) {
    for (const Column* b : times) {
      if (a == b || !a->has(row) || !b->has(row) || !(b->value(row) > 0.0)) continue;
      const double ratio = a->value(row) / b->value(row);
      const double allowed = 0.03 + a->rounding(row) + b->rounding(row) + claims.rounding(row);
      const bool inside =
          interval && ratio >= 0.97 * low->value(row) && ratio <= 1.03 * high->value(row);
      if (near(claims.value(row), ratio, allowed) || inside) return true;
      if (ratio >= 1.0) ratios += (ratios.empty() ? "" : ", ") + plain_number(ratio);
    }
  }
  if (ratios.empty()) return true;
  findings.push_back(found(
      "speed-up", interval ? Severity::warning : Severity::error,
      interval ? Confidence::possible : Confidence::certain,
      fmt::format("{}, but the times of the line give {}", claim_text(context, claims, row),
                  ratios),
      interval ? "a ratio of pairs and a ratio of medians differ on a noisy machine" : "", {row}));
  return true;
}

// In a wide table the times stand in the same line as their ratio.
bool judge_by_line(const Context& context, const Column& claims,
                   const std::vector<std::size_t>& rows, Findings& findings) {
  const Table& table = context.table();
  if (rows.size() < 2) return false;
  const double claimed = claims.value(rows.front());
  std::string ratios;
  for (const std::size_t a : rows) {
    for (const std::size_t b : rows) {
      const auto first = speed_of(table, a), second = speed_of(table, b);
      if (a == b || !first || !second) continue;
      const double ratio = first->value / second->value;
      if (near(claimed, ratio,
               0.03 + first->rounding + second->rounding + claims.rounding(rows.front()))) {
        return true;
      }
      if (ratio >= 1.0) ratios += (ratios.empty() ? "" : ", ") + plain_number(ratio);
    }
  }
  if (ratios.empty()) return false;
  findings.push_back(found("speed-up", Severity::error, Confidence::certain,
                           fmt::format("{}, but the times of the line give {}",
                                       claim_text(context, claims, rows.front()), ratios),
                           "", rows));
  return true;
}

// Both measures with their deviations: is the ratio more than noise?
void judge_noise(const Context& context, const Column& claims, Findings& findings) {
  const Table& table = context.table();
  const Column* deviation = table.find(Role::deviation);
  if (deviation == nullptr) return;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!claims.has(row) || !deviation->has(row)) continue;
    const Column* measure = table.find(Role::batch_time);
    if (measure == nullptr || !measure->has(row)) measure = table.find(Role::throughput);
    if (measure == nullptr || !measure->has(row)) continue;
    const double spread =
        deviation->value(row) / deviation->scale / (measure->value(row) / measure->scale);
    const double count = table.number(Role::repeats, row).value_or(1.0);
    const double error = std::sqrt(2.0) * spread / std::sqrt(std::max(1.0, count));
    const double gain = std::abs(claims.value(row) - 1.0);
    if (gain < 0.002 || gain > 2.0 * error) continue;
    findings.push_back(
        found("speed-up", Severity::warning, Confidence::likely,
              fmt::format("{} is within the noise: the deviation is {} of the value, {} "
                          "measurement{}",
                          claim_text(context, claims, row), share_text(spread), plain_number(count),
                          count == 1.0 ? "" : "s"),
              "repeat the measurement, and give an interval", {row}));
  }
}

}  // namespace

void check_unlike_work(Context& context, Findings& findings) {
  const Table& table = context.table();
  if (context.groups().size() > kMostCompared) return;
  const bool claims = table.find(Role::speedup) != nullptr;
  for (const Column& column : table.columns) {
    if (!must_agree(column.role)) continue;
    // By model: what values each executor has.
    std::map<std::string, std::map<std::string, std::set<std::string>>> values;
    std::map<std::string, std::vector<std::size_t>> rows;
    for (const Group& group : context.groups()) {
      const std::size_t row = group.first();
      const std::string executor = context.executor(row);
      const std::string value = cell_text(column, row);
      if (executor.empty() || !context.rate(row).has_value()) continue;
      if (value.empty() && column.role != Role::frozen) continue;
      const std::string shown_value = value.empty() ? "none" : value;
      const std::string model = context.model(row) + '\n' + table.word(Role::operation, row);
      values[model][executor].insert(shown_value);
      rows[model].push_back(row);
    }
    for (const auto& [model, executors] : values) {
      for (auto a = executors.begin(); a != executors.end(); ++a) {
        const auto b = std::find_if(std::next(a), executors.end(), [&](const auto& other) {
          return std::ranges::none_of(
              a->second, [&](const std::string& value) { return other.second.contains(value); });
        });
        if (b == executors.end()) continue;
        const bool frozen = column.role == Role::frozen;
        findings.push_back(
            found("unlike-work", frozen || claims ? Severity::error : Severity::warning,
                  Confidence::certain,
                  fmt::format("{}{} is {} for {} and {} for {}", model.substr(0, model.find('\n')),
                              model.front() == '\n' ? column.name : ", " + column.name,
                              joined(a->second, ", "), a->first, joined(b->second, ", "), b->first),
                  frozen ? "frozen layers have no backward pass: less work, not more speed"
                         : "their ratio compares different work, not only the devices",
                  rows[model]));
        break;
      }
    }
  }
}

void check_speedup(Context& context, Findings& findings) {
  const Table& table = context.table();
  const std::vector<const Column*> all_claims = table.all(Role::speedup);
  if (table.rows() > kMostCompared || all_claims.size() > kMostSideBySide) return;
  for (const Column* claims : all_claims) {
    std::map<std::size_t, std::vector<std::size_t>> by_line;
    for (std::size_t row = 0; row < table.rows(); ++row) {
      if (claims->has(row) && claims->value(row) > 0.0) by_line[table.origins[row]].push_back(row);
    }
    for (const auto& [line, rows] : by_line) {
      if (!judge_by_columns(context, *claims, rows.front(), findings) &&
          !judge_by_line(context, *claims, rows, findings)) {
        judge_speedup(context, *claims, rows.front(), findings);
      }
    }
    judge_noise(context, *claims, findings);
  }
}

void check_equal_devices(Context& context, Findings& findings) {
  if (context.groups().size() > kMostCompared) return;
  struct Row {
    std::size_t row;
    double rate;
    std::string kind;
  };
  std::map<std::string, std::vector<Row>> by_work;
  for (const Group& group : context.groups()) {
    const std::size_t row = group.first();
    const auto rate = context.rate(group);
    const std::string kind = context.kind(row);
    if (!rate || kind.empty() || context.is_warmup(row)) continue;
    const std::string work =
        fmt::format("{} {}", context.model(row), context.batch(row).value_or(0.0));
    by_work[work].push_back({row, *rate, kind});
  }
  for (const auto& [work, rows] : by_work) {
    for (const Row& cpu : rows) {
      if (cpu.kind != "cpu") continue;
      std::vector<std::size_t> same = {cpu.row};
      std::string names =
          fmt::format("{} {} img/s", context.executor(cpu.row), plain_number(cpu.rate));
      for (const Row& gpu : rows) {
        if (gpu.kind != "gpu" || !near(gpu.rate, cpu.rate, 0.27)) continue;
        same.push_back(gpu.row);
        names += fmt::format(", {} {} img/s", context.executor(gpu.row), plain_number(gpu.rate));
      }
      if (same.size() < 2) continue;
      findings.push_back(found("equal-devices", Severity::warning,
                               same.size() > 2 ? Confidence::likely : Confidence::possible,
                               fmt::format("CPU and GPU are equally fast: {}", names),
                               "what both share decides, most often the data loader", same));
      break;
    }
  }
}

}  // namespace ridgeline::audit
