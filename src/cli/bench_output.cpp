#include "cli/bench_output.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/scaling_output.h"
#include "cli/store_figures.h"
#include "cli/tables.h"
#include "measure/memory_ledger.h"
#include "store/identity_fields.h"

namespace ridgeline::cli {
namespace {

std::string four_digits(double seconds) {
  // Four digits that mean something, whatever the size.
  const double value = seconds * 1e3;
  const int decimals = value >= 1000.0 ? 0 : value >= 100.0 ? 1 : value >= 10.0 ? 2 : 3;
  return fmt::format("{:.{}f}", value, decimals);
}

std::string rate_text(double rate) {
  return rate >= 100.0 ? count_text(std::llround(rate)) : fmt::format("{:.2f}", rate);
}

std::string joules_text(double joules) {
  if (joules >= 1.0) return fmt::format("{:.2f} J", joules);
  return joules >= 1e-3 ? fmt::format("{:.2f} mJ", joules * 1e3)
                        : fmt::format("{:.2f} uJ", joules * 1e6);
}

std::string note_of(const Measured& measured, const char* name) {
  const auto found = measured.ending.details.notes.find(name);
  return found == measured.ending.details.notes.end() ? std::string() : found->second;
}

// Words that name a row where the table's columns do not.
std::string row_name(const Measured& measured) {
  const Work& work = measured.subject.work;
  return fmt::format("{}, batch {}, {}, {}, {}", work.model, work.batch, work.image.text(),
                     work.precision, executor_text(measured.subject.executor));
}

// A column of what was measured; one that is not shown always is shown where rows differ in it.
struct BenchColumn {
  std::string title;
  char alignment;
  std::string (*cell)(const Subject& subject);
  bool always;
};

const std::vector<BenchColumn>& subject_columns() {
  static const std::vector<BenchColumn> columns = {
      {"model", 'l', [](const Subject& of) { return of.work.model; }, true},
      {"settings", 'l', [](const Subject& of) { return settings_text(of.work); }, false},
      {"image", 'l', [](const Subject& of) { return of.work.image.text(); }, true},
      {"data", 'l',
       [](const Subject& of) {
         // One batch that lies on the device is no size of a data set.
         if (!of.work.loader) return of.work.data;
         return fmt::format("{} of {}", count_text(of.work.data_samples), of.work.data);
       },
       false},
      {"batch", 'r', [](const Subject& of) { return fmt::format("{}", of.work.batch); }, true},
      {"precision", 'l', [](const Subject& of) { return of.work.precision; }, true},
      {"optimizer", 'l', [](const Subject& of) { return optimizer_text(of.work); }, false},
      {"backend", 'l', [](const Subject& of) { return executor_text(of.executor); }, true},
      {"device", 'l', [](const Subject& of) { return of.executor.device; }, false},
  };
  return columns;
}

struct BenchRow {
  const Measured* measured;
  MeasuredSummary summary;
  std::string versus_first;  // how many times as fast as the first row of the same work
};

std::string versus_first(const std::vector<BenchRow>& rows, const BenchRow& row) {
  for (const BenchRow& first : rows) {
    if (first.measured->subject.work != row.measured->subject.work) continue;
    if (&first == &row) return "1";
    return fmt::format("{:.2f}x",
                       first.summary.seconds_per_iteration / row.summary.seconds_per_iteration);
  }
  return "n/a";
}

std::string finding_names(const std::vector<Finding>& findings) {
  std::vector<std::string> names;
  for (const Finding& finding : findings) {
    if (std::find(names.begin(), names.end(), finding.name) == names.end()) {
      names.push_back(finding.name);
    }
  }
  return names.empty() ? "-" : joined(names, ", ");
}

std::string optional_ms(const std::optional<double>& seconds) {
  return seconds ? four_digits(*seconds) : std::string("n/a");
}

std::string rate_of_work(const BenchRow& row) {
  std::optional<double> flops = number_of(*row.measured, "training_flops");
  if (!flops) flops = number_of(*row.measured, "forward_flops");
  return flops ? fmt::format("{:.1f}", *flops / row.summary.seconds_per_iteration / 1e9) : "n/a";
}

std::string phases_text(const MeasuredSummary& summary) {
  if (!summary.forward_seconds) return "n/a";
  return fmt::format("{}/{}/{}", four_digits(*summary.forward_seconds),
                     optional_ms(summary.backward_seconds), optional_ms(summary.optimizer_seconds));
}

// A column of numbers; one with a condition is shown where it holds for a row.
struct ResultColumn {
  const char* title;
  std::string (*cell)(const BenchRow& row);
  bool (*shown)(const BenchRow& row) = nullptr;
};

bool is_inference(const BenchRow& row) { return row.measured->subject.work.kind == "inference"; }
bool has_queued(const BenchRow& row) { return row.summary.queued.has_value(); }
bool has_loader(const BenchRow& row) { return row.summary.data_wait_seconds.has_value(); }
bool has_phases(const BenchRow& row) { return row.summary.forward_seconds.has_value(); }

const std::vector<ResultColumn>& result_columns() {
  using Row = const BenchRow&;
  static const std::vector<ResultColumn> columns = {
      {"median ms", [](Row row) { return four_digits(row.summary.interval.median); }},
      {"95% interval",
       [](Row row) {
         return fmt::format("{} to {}", four_digits(row.summary.interval.low),
                            four_digits(row.summary.interval.high));
       }},
      {"p90", [](Row row) { return four_digits(row.summary.p90); }, is_inference},
      {"p99", [](Row row) { return four_digits(row.summary.p99); }, is_inference},
      {"queued ms",
       [](Row row) {
         return row.summary.queued ? four_digits(row.summary.queued->median) : std::string("-");
       },
       has_queued},
      {"samples/s", [](Row row) { return rate_text(row.summary.samples_per_second); }},
      {"vs first", [](Row row) { return row.versus_first; }},
      {"GFLOP/s", rate_of_work},
      {"data wait", [](Row row) { return optional_ms(row.summary.data_wait_seconds); }, has_loader},
      {"upload", [](Row row) { return optional_ms(row.summary.upload_seconds); }, has_loader},
      {"fwd/bwd/opt ms", [](Row row) { return phases_text(row.summary); }, has_phases},
      {"memory",
       [](Row row) {
         const std::optional<double> memory = memory_of(*row.measured);
         return memory ? bytes_text(static_cast<std::int64_t>(*memory)) : std::string("n/a");
       }},
      {"J/sample",
       [](Row row) {
         const auto energy = number_of(*row.measured, "energy_joules_per_sample");
         return energy ? joules_text(*energy) : std::string("n/a");
       }},
      {"samples", [](Row row) { return fmt::format("{}", row.summary.wall.count); }},
      {"findings", [](Row row) { return finding_names(findings_of(*row.measured, row.summary)); }},
  };
  return columns;
}

std::string table_text(const std::vector<BenchRow>& rows) {
  std::vector<std::string> header;
  std::string alignment;
  // In a narrow terminal the first of these stay. What every row has in common says little.
  std::vector<std::string> important = {"backend", "median ms", "95% interval", "samples/s",
                                        "vs first"};
  std::vector<const BenchColumn*> subjects;
  for (const BenchColumn& column : subject_columns()) {
    std::set<std::string> values;
    for (const BenchRow& row : rows) values.insert(column.cell(row.measured->subject));
    if (!column.always && values.size() < 2) continue;
    if (values.size() > 1) important.insert(important.begin(), column.title);
    subjects.push_back(&column);
    header.push_back(column.title);
    alignment += column.alignment;
  }
  std::vector<const ResultColumn*> results;
  for (const ResultColumn& column : result_columns()) {
    if (column.shown && std::none_of(rows.begin(), rows.end(), column.shown)) continue;
    results.push_back(&column);
    header.emplace_back(column.title);
    alignment += &column == &result_columns().back() ? 'l' : 'r';
  }
  for (const char* title : {"model", "batch", "findings", "memory", "queued ms", "image",
                            "precision", "GFLOP/s", "p99", "data wait", "samples"}) {
    important.emplace_back(title);
  }

  TextTable table(header, alignment);
  table.important(important);
  for (const BenchRow& row : rows) {
    std::vector<std::string> cells;
    for (const BenchColumn* column : subjects) {
      cells.push_back(column->cell(row.measured->subject));
    }
    for (const ResultColumn* column : results) cells.push_back(column->cell(row));
    table.add_row(std::move(cells));
  }
  return shown_main(table);
}

std::string before_text(const std::vector<BenchRow>& rows) {
  TextTable table({"before measuring", "setup", "autotune", "first iteration", "warm-up",
                   "warm-up ended", "measuring ended"},
                  "lrrrrll");
  table.important({"before measuring", "warm-up", "measuring ended", "setup"});
  for (const BenchRow& row : rows) {
    const Preparation& preparation = row.measured->preparation;
    table.add_row(
        {row_name(*row.measured), duration_text(preparation.setup_seconds),
         preparation.autotune_seconds ? duration_text(*preparation.autotune_seconds) : "-",
         duration_text(row.summary.first_seconds),
         fmt::format("{} in {}", row.summary.warmup_iterations,
                     duration_text(row.summary.warmup_seconds)),
         row.measured->ending.warmup, text_of(row.measured->ending.reason)});
  }
  return shown(table);
}

std::string per_step_text(const Measured& measured) {
  double total = 0.0;
  for (const StepTime& step : measured.ending.details.steps) total += step.seconds;
  std::string sum = fmt::format("sum {}", duration_text(total));
  if (const auto share = number_of(measured, "step_sum_share")) {
    sum += fmt::format(", {:.1f}% of a whole iteration", 100.0 * *share);
  }
  return fitted(fmt::format("\nsteps of the plan of {} ({})\n", row_name(measured), sum)) +
         steps_table(measured.ending.details.steps, total);
}

std::string findings_text(const std::vector<BenchRow>& rows) {
  std::string text;
  for (const BenchRow& row : rows) {
    for (const Finding& finding : findings_of(*row.measured, row.summary)) {
      text += fmt::format("{}: {}: {}: {}\n", finding.severity, row_name(*row.measured),
                          finding.name, finding.evidence);
    }
  }
  return text;
}

// The memory ledger is in the store; a large part of unknown origin is told here.
std::string unowned_text(const Measured& measured) {
  constexpr double kMatters = 0.05;
  const std::vector<MemoryEntry>& memory = measured.ending.details.memory;
  const std::string& device = measured.subject.executor.device;
  const auto total = bytes_of(memory, device, "total"), rest = bytes_of(memory, device, "rest");
  if (!total || !rest) return {};
  const double share = static_cast<double>(*rest) / static_cast<double>(*total);
  if (std::abs(share) <= kMatters) return {};
  return fmt::format("memory: {}: the origin of {} of {} ({:.1f}%) is unknown\n",
                     row_name(measured), bytes_text(*rest), bytes_text(*total), 100.0 * share);
}

std::string notes_text(const BenchReport& report, const std::vector<BenchRow>& rows) {
  std::string text;
  for (const BenchRow& row : rows) {
    text += unowned_text(*row.measured);
    const std::string providers = note_of(*row.measured, "providers");
    // One backend alone has all of it.
    if (providers.find(',') != std::string::npos) {
      text += fmt::format("time by backend: {}: {}\n", row_name(*row.measured), providers);
    }
    const std::string parity = note_of(*row.measured, "parity");
    if (!parity.empty()) {
      text += fmt::format("parity: {}: {} ({})\n", row_name(*row.measured), parity,
                          note_of(*row.measured, "peer_version"));
    }
    if (const auto runtime = number_of(*row.measured, "runtime_memory_bytes")) {
      text += fmt::format("the driver, its libraries and other programs use another {} on {}\n",
                          bytes_text(static_cast<std::int64_t>(*runtime)),
                          row.measured->subject.executor.device);
    }
  }
  if (!report.order.empty()) text += report.order + '\n';
  if (!report.grouping.empty()) text += report.grouping + '\n';
  if (report.telemetry_share || report.recording_share) {
    text += "overhead:";
    if (report.telemetry_share) {
      text += fmt::format(" telemetry takes {:.2f}% of one core", 100.0 * *report.telemetry_share);
    }
    if (report.recording_share) {
      text += fmt::format("{} writing to the store {:.2f}% of the time, between iterations",
                          report.telemetry_share ? "," : "", 100.0 * *report.recording_share);
    }
    text += '\n';
  }
  if (!report.store.empty()) text += fmt::format("stored in {}\n", report.store);
  return text;
}

std::string left_out_text(const BenchReport& report) {
  std::string text;
  for (const LeftOut& each : report.left_out) {
    text += fmt::format("left out: {}: {}\n", each.combination.text(), each.reason);
  }
  for (const Measured& measured : report.results) {
    if (measured.ending.status == RunStatus::failed) {
      text += fmt::format("failed: {}: {}\n", row_name(measured), measured.ending.error);
    } else if (!has_samples(measured)) {
      text += fmt::format("not measured: {}: interrupted before its turn\n", row_name(measured));
    }
  }
  return text;
}

std::string bench_header(const std::vector<BenchRow>& rows, const BenchReport& report) {
  const Work& work = rows[0].measured->subject.work;
  const Executor& executor = rows[0].measured->subject.executor;
  std::string text = work.kind == "inference" ? "inference, batch norms folded" : "training steps";
  text += work.loader ? ", batches through the loader" : ", one batch on the device";
  if (!work.optimizer.empty()) text += ", " + optimizer_text(work);
  text += fmt::format(", {} thread{}", executor.threads, executor.threads == 1 ? "" : "s");
  if (report.processes > 1) text += fmt::format(", {} processes", report.processes);
  return text + "\n\n";
}

}  // namespace

std::string executor_text(const Executor& executor) {
  const std::string options = options_text(executor);
  return options.empty() ? executor.backend : fmt::format("{} ({})", executor.backend, options);
}

std::vector<std::string> bench_columns() {
  std::vector<std::string> titles;
  for (const BenchColumn& column : subject_columns()) titles.push_back(column.title);
  for (const char* title :
       {"median ms", "95% interval", "p90", "p99", "queued ms", "samples/s", "vs first", "GFLOP/s",
        "data wait", "upload", "fwd/bwd/opt ms", "memory", "J/sample", "samples", "findings"}) {
    titles.emplace_back(title);
  }
  return titles;
}

std::string bench_text(const BenchReport& report, bool per_step) {
  std::vector<BenchRow> rows;
  for (const Measured& measured : report.results) {
    if (has_samples(measured)) rows.push_back({&measured, summarise(measured), {}});
  }
  for (BenchRow& row : rows) row.versus_first = versus_first(rows, row);
  std::string text;
  if (!rows.empty()) {
    text = fitted(bench_header(rows, report)) + table_text(rows) + '\n' + scaling_text(report) +
           before_text(rows);
  }
  for (const std::string& part :
       {findings_text(rows), notes_text(report, rows), left_out_text(report)}) {
    if (!part.empty()) text += '\n' + fitted(part);
  }
  if (per_step) {
    for (const BenchRow& row : rows) {
      if (!row.measured->ending.details.steps.empty()) text += per_step_text(*row.measured);
    }
  }
  return text;
}

std::string bench_csv(const BenchReport& report) {
  std::string text;
  for (const IdentityField& field : identity_fields()) text += fmt::format("{},", field.name);
  text += "iteration,ms,process,block,device_ms,data_wait_ms,upload_ms,exchange_ms,exposed_ms\n";
  const auto cell = [](const std::optional<double>& seconds) {
    return seconds ? fmt::format("{}", *seconds * 1e3) : std::string();
  };
  for (const Measured& measured : report.results) {
    RunRecord run;
    run.work = measured.subject.work;
    run.executor = measured.subject.executor;
    std::string identity;
    for (const IdentityField& field : identity_fields()) {
      identity += csv_cell(field.text(run)) + ',';
    }
    std::map<std::int64_t, std::int64_t> numbers;  // of the process
    for (const Sample& sample : measured.samples) {
      if (sample.kind != SampleKind::measured) continue;
      text += fmt::format("{}{},{},{},{},{},{},{},{},{}\n", identity, ++numbers[sample.process],
                          sample.wall_seconds * 1e3, sample.process, sample.block,
                          cell(sample.device_seconds), cell(sample.data_wait_seconds),
                          cell(sample.upload_seconds), cell(sample.exchange_seconds),
                          cell(sample.exposed_seconds));
    }
  }
  return text;
}

}  // namespace ridgeline::cli
