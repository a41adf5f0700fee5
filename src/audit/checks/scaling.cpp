// Times that must follow from each other: batches, epochs, totals, parts; and units by which they
// do not.

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "analysis/stats/summary.h"
#include "audit/checks/checks.h"
#include "audit/context.h"
#include "base/text.h"

namespace ridgeline::audit {
namespace {

// All that tells configurations apart but the batch.
std::string work_key(const Context& context, std::size_t row) {
  std::string key;
  for (const Column& column : context.table().columns) {
    if (!info_of(column.role).key || column.role == Role::batch || column.role == Role::run)
      continue;
    if (column.has(row)) {
      key += column.is_words() ? column.word(row) : fmt::format("{}", column.value(row));
    }
    key += '\n';
  }
  return key;
}

struct Point {
  double batch, rate;
  std::size_t row;

  [[nodiscard]] double seconds() const { return batch / rate; }
};

std::map<std::string, std::vector<Point>> points_by_work(const Context& context) {
  std::map<std::string, std::vector<Point>> points;
  for (const Group& group : context.groups()) {
    const auto batch = context.batch(group.first());
    const auto rate = context.rate(group);
    if (!batch || !rate || !(*batch > 0.0) || context.is_warmup(group.first())) continue;
    points[work_key(context, group.first())].push_back({*batch, *rate, group.first()});
  }
  for (auto& [key, list] : points) std::ranges::sort(list, {}, &Point::batch);
  return points;
}

// A wrong unit makes the same factor in most of its rows; a stall of the machine may be as long,
// but stalls are not alike, and few rows have one.
bool is_unit_factor(const std::vector<double>& factors, std::size_t rows) {
  if (10 * factors.size() < rows) return false;
  const double middle = median_of(factors);
  const auto alike =
      std::ranges::count_if(factors, [&](double factor) { return near(factor, middle, 0.25); });
  return middle > 750.0 && middle < 1333.0 &&
         10 * static_cast<std::size_t>(alike) >= 7 * factors.size();
}

// Rows of one configuration that lie a factor of about 1000 from the median.
void judge_time_units(const Context& context, const Group& group, Role role, Findings& findings) {
  const Column* column = context.table().find(role);
  if (column == nullptr || group.rows.size() < 4) return;
  const std::vector<double> times = context.series(group, role);
  if (times.size() < 4) return;
  const double median = median_of(times);
  std::vector<std::size_t> rows[2];
  std::vector<double> factors[2];
  for (const std::size_t row : group.rows) {
    if (!column->has(row) || !(column->value(row) > 0.0)) continue;
    const std::size_t slow = column->value(row) > median ? 1 : 0;
    const double factor = slow == 1 ? column->value(row) / median : median / column->value(row);
    if (factor < 300.0 || factor > 3000.0) continue;
    rows[slow].push_back(row);
    factors[slow].push_back(factor);
  }
  for (const std::size_t slow : {0U, 1U}) {
    if (factors[slow].empty() || !is_unit_factor(factors[slow], times.size())) continue;
    // Nothing is 1000 times too fast; a machine that others use can be as slow.
    findings.push_back(found(
        "mixed-units", slow == 1 ? Severity::warning : Severity::error,
        slow == 1 ? Confidence::possible : Confidence::likely,
        fmt::format("{}: {} of {} times differ from the median of {} by a factor of about 1000: {}",
                    context.label(group.first()), rows[slow].size(), times.size(),
                    duration_text(median), duration_text(column->value(rows[slow].front()))),
        slow == 1 ? "seconds among milliseconds, or stalls of the machine"
                  : "milliseconds and seconds stand in one column",
        rows[slow]));
  }
}

constexpr double kMebi = 1.048576, kGibi = 1.073741824;

bool is_binary_ratio(double a, double b) {
  const double ratio = std::max(a, b) / std::min(a, b);
  return std::abs(ratio - kMebi) < 3e-4 || std::abs(ratio - kGibi) < 3e-4;
}

void judge_memory_units(const Context& context, Findings& findings) {
  const Table& table = context.table();
  const std::vector<const Column*> columns = table.all(Role::memory);
  std::map<std::string, std::vector<std::pair<double, std::size_t>>> by_work;
  std::vector<std::size_t> rows;
  for (const Group& group : context.groups()) {
    const std::size_t row = group.first();
    for (std::size_t i = 0; i + 1 < columns.size(); ++i) {
      if (columns[i]->has(row) && columns[i + 1]->has(row) &&
          is_binary_ratio(columns[i]->value(row), columns[i + 1]->value(row))) {
        rows.push_back(row);
      }
    }
    if (columns.empty() || !columns.front()->has(row)) continue;
    by_work[fmt::format("{} {} {}", context.model(row), context.batch(row).value_or(0.0),
                        context.precision(row))]
        .emplace_back(columns.front()->value(row), row);
  }
  // The same work on devices that differ by exactly the factor between MB and MiB.
  std::size_t pairs = 0;
  std::vector<std::size_t> across;
  for (const auto& [work, uses] : by_work) {
    for (std::size_t i = 0; i + 1 < uses.size(); ++i) {
      ++pairs;
      if (is_binary_ratio(uses[i].first, uses[i + 1].first)) across.push_back(uses[i + 1].second);
    }
  }
  if (2 * across.size() > pairs && across.size() > 1) {
    rows.insert(rows.end(), across.begin(), across.end());
  }
  if (rows.empty()) return;
  findings.push_back(
      found("mixed-units", Severity::warning, Confidence::likely,
            fmt::format("memory differs by exactly 1.0486 or 1.0737 in {} row{}: {}", rows.size(),
                        rows.size() == 1 ? "" : "s", context.label(rows.front())),
            "MB and MiB (or GB and GiB) are mixed", rows));
}

bool has_word(std::string text, std::initializer_list<std::string_view> words) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::ranges::any_of(
      words, [&](std::string_view word) { return text.find(word) != std::string::npos; });
}

struct Parts {
  double sum = 0.0, rounding = 0.0;
  std::optional<double> total;
  bool whole = false, part = false;  // containers, and what they contain
  std::vector<std::size_t> rows;
};

void judge_parts(const Context& context, const Parts& parts, Findings& findings) {
  if (!parts.total || parts.rows.size() < 3 || !(*parts.total > 0.0)) return;
  const std::string numbers =
      fmt::format("{}: {} parts sum to {}, the total is {}", context.label(parts.rows.front()),
                  parts.rows.size(), duration_text(parts.sum), duration_text(*parts.total));
  if (parts.whole && parts.part &&
      near(parts.sum, *parts.total, 0.002 + parts.rounding / *parts.total)) {
    findings.push_back(found("overlapping-parts", Severity::error, Confidence::likely,
                             numbers + " although some contain others",
                             "parts that overlap cannot sum to the total: they were adjusted, or "
                             "the total was computed from them",
                             parts.rows));
  } else if (parts.sum > 1.02 * *parts.total + parts.rounding) {
    findings.push_back(found("overlapping-parts", Severity::error, Confidence::certain, numbers,
                             "parts overlap, or the total leaves something out", parts.rows));
  }
}

}  // namespace

void check_mixed_units(Context& context, Findings& findings) {
  for (const Group& group : context.groups()) {
    for (const Role role : {Role::batch_time, Role::epoch_time, Role::total_time}) {
      judge_time_units(context, group, role, findings);
    }
  }
  for (const auto& [key, points] : points_by_work(context)) {
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
      const double factor = points[i].rate / points[i + 1].rate;
      if (std::max(factor, 1.0 / factor) < 300.0 || std::max(factor, 1.0 / factor) > 5000.0) {
        continue;
      }
      findings.push_back(found("mixed-units", Severity::error, Confidence::likely,
                               fmt::format("{} and batch {} differ by a factor of {} per image",
                                           context.label(points[i].row), points[i + 1].batch,
                                           plain_number(std::max(factor, 1.0 / factor))),
                               "milliseconds and seconds stand in one column",
                               {points[i].row, points[i + 1].row}));
    }
  }
  judge_memory_units(context, findings);
}

void check_scaling(Context& context, Findings& findings) {
  for (const auto& [key, points] : points_by_work(context)) {
    for (std::size_t i = 0; i + 1 < points.size(); ++i) {
      const Point& small = points[i];
      const Point& large = points[i + 1];
      if (large.batch < 1.2 * small.batch) continue;
      const std::vector<std::size_t> rows = {small.row, large.row};
      const std::string numbers = fmt::format(
          "{}: {} a batch ({} img/s); at batch {} {} ({} img/s)", context.label(small.row),
          duration_text(small.seconds()), plain_number(small.rate), plain_number(large.batch),
          duration_text(large.seconds()), plain_number(large.rate));
      const double factor = large.rate / small.rate;
      if (large.seconds() < 0.8 * small.seconds()) {
        findings.push_back(found("scaling", Severity::error, Confidence::likely, numbers,
                                 "more work cannot take less time: the device was not waited for, "
                                 "or the batch is another one",
                                 rows));
      } else if (factor < 1.0 / 3.0 && factor > 1.0 / 300.0) {
        findings.push_back(found("scaling", Severity::warning, Confidence::likely, numbers,
                                 "the larger batch does not fit into the device's memory and "
                                 "spills, or the device throttles: this is no speed of the network",
                                 rows));
      }
    }
  }
}

void check_totals(Context& context, Findings& findings) {
  const Table& table = context.table();
  if (table.find(Role::total_time) == nullptr && table.find(Role::epoch_time) == nullptr) return;
  std::vector<std::size_t> totals, epochs_off;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto total = table.number(Role::total_time, row);
    const auto epoch = table.number(Role::epoch_time, row);
    const auto epochs = table.number(Role::epochs, row);
    if (total && epoch && epochs &&
        (*total < 0.93 * *epoch * *epochs || *total > 3.0 * *epoch * *epochs)) {
      totals.push_back(row);
    }
    const auto rate = table.number(Role::throughput, row);
    auto samples = table.number(Role::samples, row);
    if (!samples && context.dataset(row) != nullptr && context.dataset(row)->training > 0 &&
        !table.number(Role::batches_per_epoch, row)) {
      samples = static_cast<double>(context.dataset(row)->training);
    }
    if (!rate || !epoch || !samples) continue;
    // An epoch may hold an evaluation; it cannot be shorter than its training.
    const double share = *rate * *epoch / *samples;
    if (share < 0.9 || share > 2.0) epochs_off.push_back(row);
  }
  if (!totals.empty()) {
    const std::size_t row = totals.front();
    const double epochs = *table.number(Role::epochs, row);
    findings.push_back(
        found("totals", Severity::error, Confidence::certain,
              fmt::format("{}: {} in all, but {} epochs of {} are {}", context.label(row),
                          duration_text(*table.number(Role::total_time, row)), plain_number(epochs),
                          duration_text(*table.number(Role::epoch_time, row)),
                          duration_text(epochs * *table.number(Role::epoch_time, row))),
              "fewer epochs were run, or the times are of different runs", totals));
  }
  if (!epochs_off.empty()) {
    const std::size_t row = epochs_off.front();
    findings.push_back(
        found("totals", Severity::error, Confidence::likely,
              fmt::format("{}: {} img/s over an epoch of {} are {} samples, which is not an epoch",
                          context.label(row), plain_number(*table.number(Role::throughput, row)),
                          duration_text(*table.number(Role::epoch_time, row)),
                          plain_number(*table.number(Role::throughput, row) *
                                       *table.number(Role::epoch_time, row))),
              "rate and time are of different runs, or part of the data was used", epochs_off));
  }
}

void check_overlapping_parts(Context& context, Findings& findings) {
  const Table& table = context.table();
  const Column* names = table.find(Role::operation);
  const Column* times = table.find(Role::time);
  if (names == nullptr || times == nullptr || table.rows() > 5000) return;
  std::map<std::string, Parts> by_executor;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!names->has(row) || !times->has(row)) continue;
    Parts& parts = by_executor[context.executor(row) + '\n' + context.model(row) + '\n' +
                               table.word(Role::run, row)];
    const std::string& name = names->word(row);
    if (has_word(name, {"total", "overall", "whole", "sum"})) {
      parts.total = times->value(row);
      continue;
    }
    parts.sum += times->value(row);
    parts.rounding += times->rounding(row) * times->value(row);
    parts.whole =
        parts.whole || has_word(name, {"forward", "backward", "gradient", "training step"});
    parts.part =
        parts.part || has_word(name, {"matmul", "matrix", "gemm", "relu", "softmax", "conv"});
    parts.rows.push_back(row);
  }
  for (const auto& [key, parts] : by_executor) judge_parts(context, parts, findings);
}

void check_trace(Context& context, Findings& findings) {
  const Table& table = context.table();
  const Column* kernels = table.find(Role::kernel_time);
  const Column* steps = table.find(Role::batch_time);
  if (kernels == nullptr || steps == nullptr) return;
  double busy = 0.0, all = 0.0, late = 0.0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    if (!kernels->has(row) || !steps->has(row)) continue;
    busy += kernels->value(row);
    all += steps->value(row);
    late = std::max(late, table.number(Role::late_time, row).value_or(0.0));
  }
  if (!(all > 0.0)) return;
  const double step = all / static_cast<double>(table.rows());
  if (busy < 0.5 * all) {
    findings.push_back(
        found("trace", Severity::warning, Confidence::certain,
              fmt::format("kernels run in {} of the steps' time: {} of {}", share_text(busy / all),
                          duration_text(busy), duration_text(all)),
              "the device waits for the host: the loader, small kernels, or copies", {}));
  }
  if (late > 0.1 * step) {
    findings.push_back(found("trace", Severity::warning, Confidence::certain,
                             fmt::format("kernels go on for {} after their step has ended, {} of a "
                                         "step",
                                         duration_text(late), share_text(late / step)),
                             "the steps were not synchronised: their times are those of launches",
                             {}));
  }
}

}  // namespace ridgeline::audit
