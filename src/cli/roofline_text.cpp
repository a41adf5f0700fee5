#include "cli/roofline_text.h"

#include <algorithm>

#include "analysis/roofline/sketch.h"
#include "base/error.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/tables.h"

namespace ridgeline::cli {
namespace {

std::string or_na(const std::optional<double>& number, const char* format) {
  return number ? fmt::format(fmt::runtime(format), *number) : "n/a";
}

std::string bound_with_share(const RooflinePoint& point) {
  if (point.bound_share > 0.995) return point.bound_text();
  return fmt::format("{} {:.0f}%", point.bound_text(), 100.0 * point.bound_share);
}

std::string heading(const RooflineGroup& group) {
  const bool cpu = group.device == "cpu";
  const std::string name = cpu ? group.environment.cpu : group.environment.gpus;
  std::string text =
      fmt::format("{}{}, {}", group.device, name.empty() ? "" : " (" + name + ")", group.precision);
  if (cpu) text += fmt::format(", {} thread{}", group.threads, group.threads == 1 ? "" : "s");
  if (!group.environment.host.empty()) text += ", on " + group.environment.host;
  if (!group.environment.label.empty()) text += fmt::format(" ({})", group.environment.label);
  return text;
}

// Units that the runs of a group compute in; roofs of others are not shown.
std::vector<std::string> units_of(const RooflineGroup& group) {
  std::vector<std::string> units;
  for (const ComputeRoof& roof : group.roofs.compute) {
    const auto uses = [&](const RunRoofline& run) {
      return std::any_of(run.steps.begin(), run.steps.end(), [&](const StepTime& step) {
        return step.flops > 0 && step.unit == roof.unit;
      });
    };
    if (std::any_of(group.runs.begin(), group.runs.end(), uses)) units.push_back(roof.unit);
  }
  return units;
}

std::string roofs_text(const RooflineGroup& group) {
  const std::vector<std::string> units = units_of(group);
  std::vector<std::string> header = {"memory roof", "GB/s", "holds"};
  std::string alignment = "lrr", text = fmt::format("roofs: {}; compute ", group.roofs.scope);
  std::vector<std::string> peaks;
  for (const std::string& unit : units) {
    const ComputeRoof& roof = *group.roofs.find_compute(unit);
    peaks.push_back(
        fmt::format("{} {} GFLOP/s ({})", unit, giga(roof.flops_per_second), roof.path));
    header.push_back(fmt::format("ridge {} FLOP/byte", unit));
    alignment += 'r';
  }
  text += units.empty() ? "n/a for the units of these runs" : joined(peaks, ", ");
  if (group.roofs.latency_seconds) {
    text += fmt::format("; starting a step takes {}", duration_text(*group.roofs.latency_seconds));
  }
  TextTable table(header, alignment);
  for (const MemoryRoof& roof : group.roofs.memory) {
    std::vector<std::string> cells = {
        fmt::format("{} {}", roof.level, roof.path), giga(roof.bytes_per_second),
        roof.capacity_bytes > 0 ? bytes_text(roof.capacity_bytes) : "the rest"};
    for (const std::string& unit : units) {
      cells.push_back(fmt::format("{:.3g}", ridge_point(*group.roofs.find_compute(unit), roof)));
    }
    table.add_row(std::move(cells));
  }
  return fitted(text) + "\n\n" + shown(table);
}

char mark_of(std::size_t index) { return index < 26 ? static_cast<char>('a' + index) : '+'; }

std::string networks_text(const RooflineGroup& group) {
  TextTable table(
      {"mark", "run", "model", "image", "backend", "batch", "time", "sum of steps", "GFLOP",
       "GB moved", "FLOP/byte", "GFLOP/s", "GB/s", "attainable GFLOP/s", "efficiency", "bound"},
      "lrlllrrrrrrrrrrl");
  table.important({"mark", "run", "model", "backend", "batch", "time", "efficiency", "bound",
                   "GFLOP/s", "FLOP/byte"});
  std::vector<SketchPoint> marks;
  for (std::size_t i = 0; i < group.runs.size(); ++i) {
    const RunRoofline& run = group.runs[i];
    const RooflinePoint& point = run.network;
    table.add_row(
        {std::string(1, mark_of(i)), fmt::format("{}", run.run.id),
         run.run.work.kind == "training" ? point.name : point.name + " " + run.run.work.kind,
         run.run.work.image.text(), run.run.executor.backend, fmt::format("{}", run.run.work.batch),
         duration_text(point.seconds), share_or_na(run.steps_seconds / point.seconds),
         giga(point.flops), giga(point.bytes), or_na(point.intensity(), "{:.2f}"),
         giga(point.flops_per_second()), giga(point.bytes_per_second()),
         giga(point.attainable_flops_per_second()), share_or_na(point.efficiency()),
         bound_with_share(point)});
    marks.push_back({mark_of(i), point.intensity().value_or(0.0), point.flops_per_second()});
  }
  const std::vector<std::string> units = units_of(group);
  std::string text = shown_main(table);
  if (!units.empty()) text += "\n" + roofline_sketch(group.roofs, units.front(), marks);
  return text;
}

std::string trajectory_text(const std::vector<const RunRoofline*>& way) {
  TextTable table({"batch", "samples/s", "FLOP/byte", "GFLOP/s", "efficiency", "bound"}, "rrrrrl");
  for (const RunRoofline* run : way) {
    const RooflinePoint& point = run->network;
    table.add_row({fmt::format("{}", run->run.work.batch),
                   fmt::format("{:.1f}", static_cast<double>(run->run.work.batch) / point.seconds),
                   or_na(point.intensity(), "{:.2f}"), giga(point.flops_per_second()),
                   share_or_na(point.efficiency()), bound_with_share(point)});
  }
  const RunRecord& first = way.front()->run;
  return fmt::format("\n{} {} with {}: from batch {} to {}\n{}", first.work.model,
                     first.work.image.text(), first.executor.backend, first.work.batch,
                     way.back()->run.work.batch, shown(table));
}

std::string_view name_of(Grouping by) {
  switch (by) {
    case Grouping::network:
      return "network";
    case Grouping::layer:
      return "layer";
    case Grouping::op:
      return "op";
    case Grouping::step:
      return "step";
  }
  return "";
}

std::string points_text(const RunRoofline& run, const RooflineGroup& group,
                        const RooflineView& view) {
  const bool steps = view.by == Grouping::step;
  const std::vector<RooflinePoint> points = shown_points(run, group.roofs, view);
  const bool counted = std::any_of(points.begin(), points.end(), [](const RooflinePoint& point) {
    return point.counted_bytes.has_value();
  });
  std::vector<std::string> header = {steps ? "#" : "steps", std::string(name_of(view.by))};
  std::string alignment = "rl";
  if (steps) {
    header = {"#", "layer", "ops", "phase", "kernel"};
    alignment = "rllll";
  }
  for (const char* column : {"time", "share", "lost", "FLOP/byte", "GFLOP/s", "GB/s",
                             "attainable GFLOP/s", "efficiency"}) {
    header.emplace_back(column);
    alignment += 'r';
  }
  if (counted) {
    header.emplace_back("FLOP/byte (counted)");
    alignment += 'r';
  }
  header.insert(header.end(), {"bound", "remark"});
  alignment += "ll";
  TextTable table(header, alignment);
  table.important({std::string(name_of(view.by)), "layer", "time", "lost", "efficiency", "bound",
                   "share", "GFLOP/s", "FLOP/byte", "#"});
  for (const RooflinePoint& point : points) {
    std::vector<std::string> cells = {fmt::format("{}", steps ? point.index : point.steps),
                                      point.name};
    if (steps) cells.insert(cells.end(), {point.ops, point.phase, point.kernel});
    cells.insert(
        cells.end(),
        {duration_text(point.seconds), share_or_na(point.seconds / run.steps_seconds),
         point.least_seconds ? duration_text(std::max(0.0, point.seconds - *point.least_seconds))
                             : "n/a",
         or_na(point.intensity(), "{:.2f}"), giga(point.flops_per_second()),
         giga(point.bytes_per_second()), giga(point.attainable_flops_per_second()),
         share_or_na(point.efficiency())});
    if (counted) cells.push_back(or_na(point.counted_intensity(), "{:.2f}"));
    cells.insert(cells.end(), {bound_with_share(point), point.remark});
    table.add_row(std::move(cells));
  }
  return fitted(fmt::format("\nrun {}: {} {}, batch {}, {} on {}, {}{}{}\n", run.run.id,
                            run.run.work.model, run.run.work.image.text(), run.run.work.batch,
                            run.run.executor.backend, group.device, group.precision,
                            group.threads > 0 ? fmt::format(", {} threads", group.threads) : "",
                            view.top ? ", the points that lose the most time" : "")) +
         shown_main(table);
}

}  // namespace

std::vector<std::string> roofline_columns() {
  return {"mark",
          "run",
          "model",
          "image",
          "backend",
          "batch",
          "steps",
          "#",
          "layer",
          "op",
          "ops",
          "phase",
          "kernel",
          "time",
          "share",
          "lost",
          "sum of steps",
          "GFLOP",
          "GB moved",
          "FLOP/byte",
          "GFLOP/s",
          "GB/s",
          "attainable GFLOP/s",
          "efficiency",
          "bound",
          "remark"};
}

std::string roofline_text(const StoredRooflines& found, const RooflineView& view) {
  std::string text;
  for (const RooflineGroup& group : found.groups) {
    text += fmt::format("{}{}\n{}\n{}", text.empty() ? "" : "\n\n", fitted(heading(group)),
                        roofs_text(group), networks_text(group));
    for (const auto& way : trajectories(group)) text += trajectory_text(way);
    for (const RunRoofline& run : group.runs) {
      if (view.by != Grouping::network) text += points_text(run, group, view);
    }
    for (const RunRoofline& run : group.runs) {
      for (const Finding& finding : roofline_errors(run, group.roofs)) {
        text += fmt::format("\n{}: {}, run {}: {}\n", finding.severity, finding.name, run.run.id,
                            finding.evidence);
      }
    }
  }
  for (const std::string& reason : found.left_out)
    text += fitted(fmt::format("\nleft out: {}\n", reason));
  return text;
}

std::string roofline_csv(const StoredRooflines& found, const RooflineView& view) {
  std::string text =
      "run,model,image,batch,backend,device,precision,threads,index,name,ops,phase,kernel,steps,"
      "unit,seconds,flops,work_flops,bytes,counted_bytes,flop_per_byte,flop_per_second,"
      "byte_per_second,attainable_flop_per_second,efficiency,bound,level,remark\n";
  for (const RooflineGroup& group : found.groups) {
    for (const RunRoofline& run : group.runs) {
      const Work& work = run.run.work;
      for (const RooflinePoint& point : shown_points(run, group.roofs, view)) {
        text += csv_line(run.run.id, work.model, work.image.text(), work.batch,
                         run.run.executor.backend, group.device, group.precision, group.threads,
                         point.index, point.name, point.ops, point.phase, point.kernel, point.steps,
                         point.unit, point.seconds, point.flops, point.work_flops, point.bytes,
                         point.counted_bytes, point.intensity(), point.flops_per_second(),
                         point.bytes_per_second(), point.attainable_flops_per_second(),
                         point.efficiency(), name_of(point.bound), point.level, point.remark);
      }
    }
  }
  return text;
}

}  // namespace ridgeline::cli
