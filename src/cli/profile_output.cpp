#include "cli/profile_output.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "cli/difference_output.h"
#include "cli/output.h"
#include "cli/tables.h"
#include "measure/profile/device_idle.h"

namespace ridgeline::cli {
namespace {

constexpr std::size_t kGains = 5;  // rows of "possible gain" without --top
constexpr const char* kNone = "";

std::string heading(const Profile& profile) {
  const Work& work = profile.work;
  const Executor& executor = profile.executor;
  std::string text =
      fmt::format("{} {}, batch {}, {}, {}: {} on {}", work.model, work.kind, work.batch,
                  work.image.text(), work.precision, executor.backend, executor.device);
  if (executor.device == "cpu") {
    text += fmt::format(", {} thread{}", executor.threads, executor.threads == 1 ? "" : "s");
  }
  return text + '\n';
}

std::string overhead_text(const Profile& profile) {
  const double overhead = overhead_share(profile);
  return fmt::format(
      "one iteration takes {} with profiling, {} without (profiling adds {:+.1f}%); {} profiled "
      "iteration{}\n",
      duration_text(profile.profiled_seconds), duration_text(profile.unprofiled_seconds),
      100.0 * overhead, profile.iterations, profile.iterations == 1 ? "" : "s");
}

// Columns that would be empty in all rows are left out.
struct Columns {
  bool threads = false, counters = false;
};

Columns columns_of(const ProfileTable& table) {
  Columns columns;
  for (const TableRow& row : table.rows) {
    columns.threads = columns.threads || row.imbalance.has_value();
    columns.counters = columns.counters || row.instructions || row.cycles || row.cache_misses;
  }
  return columns;
}

std::string mega(const std::optional<double>& number) {
  return number ? fmt::format("{:.4g}", *number / 1e6) : "n/a";
}

// A kernel that does a whole network covers too many ops for a column.
std::string short_name(const std::string& name) {
  constexpr std::size_t kWidest = 60, kEnds = 28;
  if (name.size() <= kWidest || name.find('+') == std::string::npos) return name;
  return fmt::format("{}…{} ({} ops)", name.substr(0, kEnds), name.substr(name.size() - kEnds),
                     std::count(name.begin(), name.end(), '+') + 1);
}

std::vector<std::string> cells_of(const TableRow& row, TableBy by, const Columns& columns) {
  const bool step = by == TableBy::step;
  std::vector<std::string> cells;
  if (step) cells.push_back(row.point ? fmt::format("{}", row.point->index) : kNone);
  cells.push_back(short_name(row.name));
  if (step) {
    cells.push_back(row.point ? short_name(row.point->ops) : kNone);
    cells.push_back(row.point ? row.point->phase : kNone);
    cells.push_back(row.point ? row.point->kernel : kNone);
  } else {
    cells.push_back(row.steps > 0 ? fmt::format("{}", row.steps) : kNone);
  }
  cells.push_back(duration_text(row.seconds));
  cells.push_back(share_or_na(row.share));
  if (row.point) {
    const bool timed = row.seconds > 0.0;
    cells.push_back(timed ? giga(row.point->flops_per_second()) : "n/a");
    cells.push_back(timed ? giga(row.point->bytes_per_second()) : "n/a");
    cells.push_back(share_or_na(row.point->efficiency()));
    cells.push_back(row.point->bound_text());
  } else {
    cells.insert(cells.end(), 4, kNone);
  }
  if (columns.threads) {
    std::string imbalance = row.point ? "n/a" : kNone;
    if (row.imbalance) imbalance = fmt::format("{:.2f}", *row.imbalance);
    cells.push_back(imbalance);
  }
  if (columns.counters) {
    for (const auto& value : {row.instructions, row.cycles, row.cache_misses}) {
      cells.push_back(row.point ? mega(value) : kNone);
    }
  }
  return cells;
}

std::string table_text(const ProfileTable& table) {
  const Columns columns = columns_of(table);
  const bool step = table.by == TableBy::step;
  const std::string name(kTableNames[static_cast<std::size_t>(table.by)]);
  std::vector<std::string> header = {table.by == TableBy::study2 ? "operation" : name, "calls"};
  std::string alignment = "lr";
  if (step) {
    header = {"#", "layer", "ops", "phase", "kernel"};
    alignment = "rllll";
  }
  header.insert(header.end(), {"time", "share", "GFLOP/s", "GB/s", "of roof", "bound"});
  alignment += "rrrrrl";
  if (columns.threads) {
    header.emplace_back("imbalance");
    alignment += 'r';
  }
  if (columns.counters) {
    header.insert(header.end(), {"M instructions", "M cycles", "M cache misses"});
    alignment += "rrr";
  }
  TextTable text(header, alignment);
  text.important(
      {step ? "#" : header[0], "layer", "time", "share", "of roof", "bound", "GFLOP/s", "GB/s"});
  TableRow total;
  total.name = "iteration";
  for (const TableRow& row : table.rows) {
    text.add_row(cells_of(row, table.by, columns));
    total.seconds += row.seconds;
    total.share += row.share;
    total.steps += row.steps;
  }
  text.add_row(cells_of(total, table.by, columns));
  return shown_main(text);
}

std::string breakdown_text(const Profile& profile) {
  TextTable table({"part of the iteration", "time", "share"}, "lrr");
  const TimeBreakdown& parts = profile.breakdown;
  const bool cpu = profile.executor.device == "cpu";
  const auto add = [&](const char* name, double seconds) {
    table.add_row({name, duration_text(seconds), share_or_na(seconds / profile.profiled_seconds)});
  };
  add(cpu ? "kernel (steps of the plan)" : "kernel", parts.kernel);
  add("memory copy", parts.copy);
  add("runtime and kernel launches", parts.runtime);
  add("data loading", parts.data);
  add("cpu (work of the host)", parts.cpu);
  add("idle and other", parts.idle);
  add("sum", parts.total());
  return shown(table);
}

std::string idle_text(const Profile& profile) {
  if (profile.executor.device == "cpu") return {};
  const DeviceIdle idle = attribute_idle(profile.events);
  if (idle.total() <= 0.0) return {};
  const auto mean = [&](double seconds) {
    return duration_text(seconds / static_cast<double>(profile.iterations));
  };
  return fmt::format(
      "{} is idle for {} of an iteration: {} because the host is late, {} waiting for data, {} "
      "waiting for earlier work, {} for unknown reasons\n",
      profile.executor.device, mean(idle.total()), mean(idle.host_late), mean(idle.data),
      mean(idle.dependency), mean(idle.unknown));
}

std::string gains_text(const ProfileTable& table, std::size_t count) {
  std::vector<Gain> gains = gains_of(table);
  if (gains.empty()) return {};
  TextTable text({"possible gain", "now", "at its roof", "lost", "iteration then", "bound"},
                 "lrrrrl");
  const std::size_t hidden = gains.size() - std::min(gains.size(), count);
  gains.resize(gains.size() - hidden);
  for (const Gain& gain : gains) {
    text.add_row({short_name(gain.name), duration_text(gain.seconds),
                  duration_text(gain.least_seconds), duration_text(gain.lost_seconds),
                  duration_text(gain.step_seconds), gain.bound});
  }
  return '\n' + shown(text);
}

}  // namespace

std::vector<std::string> profile_columns() {
  std::vector<std::string> titles = {"#", "operation", "ops"};
  for (const std::string_view name : kTableNames) titles.emplace_back(name);
  for (const char* title : {"calls", "time", "share", "GFLOP/s", "GB/s", "of roof", "bound",
                            "imbalance", "M instructions", "M cycles", "M cache misses"}) {
    titles.emplace_back(title);
  }
  return titles;
}

std::string profile_text(const ProfileReport& report, const ProfileView& view) {
  const Profile& profile = report.collected.profile;
  const ProfileTable table = table_of(profile, report.roofs, view.by);
  const std::size_t top = view.top ? static_cast<std::size_t>(*view.top) : table.rows.size();
  std::string text = fitted(heading(profile) + overhead_text(profile)) + '\n';
  text += table_text(top_of(table, top)) + '\n' + breakdown_text(profile);
  text += fitted(idle_text(profile));
  text += gains_text(table, view.top ? top : kGains);
  if (view.memory) {
    text += '\n' + memory_timeline_text(report.collected.memory, profile.readings);
  }
  if (view.difference) text += '\n' + difference_text(*view.difference);
  if (!profile.missing.empty()) text += '\n';
  for (const Missing& missing : profile.missing) {
    text += fitted(fmt::format("{}: n/a ({})\n", missing.what, missing.reason));
  }
  if (!profile.findings.empty()) text += '\n';
  for (const Finding& finding : profile.findings) {
    text += fitted(fmt::format("{}: {}: {}\n", finding.severity, finding.name, finding.evidence));
  }
  if (!view.trace.empty()) text += fmt::format("\ntrace: {}\n", view.trace);
  if (!report.run.empty()) {
    text += fmt::format("\nstored as run {} in {}\n", report.run.substr(0, 8), report.store);
  }
  return text;
}

std::string profile_csv(const ProfileReport& report, const ProfileView& view) {
  const Profile& profile = report.collected.profile;
  ProfileTable table = table_of(profile, report.roofs, view.by);
  if (view.top) table = top_of(table, static_cast<std::size_t>(*view.top));
  std::string text =
      "model,image,batch,backend,device,precision,by,index,name,ops,phase,kernel,calls,seconds,"
      "share,flops,bytes,flop_per_second,byte_per_second,efficiency,bound,least_seconds,imbalance,"
      "instructions,cycles,cache_misses\n";
  const Work& work = profile.work;
  for (const TableRow& row : table.rows) {
    const RooflinePoint none;
    const RooflinePoint& point = row.point ? *row.point : none;
    const auto where = [](bool known, auto value) {
      return known ? std::optional(value) : std::nullopt;
    };
    const bool steps = row.point.has_value(), rates = steps && row.seconds > 0.0;
    text += csv_line(
        work.model, work.image.text(), work.batch, profile.executor.backend,
        profile.executor.device, work.precision, kTableNames[static_cast<std::size_t>(view.by)],
        where(view.by == TableBy::step && steps, point.index), row.name, point.ops, point.phase,
        point.kernel, row.steps, row.seconds, row.share, where(steps, point.flops),
        where(steps, point.bytes), where(rates, point.flops / row.seconds),
        where(rates, point.bytes / row.seconds), point.efficiency(),
        steps ? point.bound_text() : "", point.least_seconds, row.imbalance, row.instructions,
        row.cycles, row.cache_misses);
  }
  return text;
}

}  // namespace ridgeline::cli
