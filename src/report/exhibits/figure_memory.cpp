// Bytes by owner: what the plan asked for beside what was measured.

#include <algorithm>
#include <array>

#include "report/exhibits/figure_kinds.h"
#include "report/exhibits/figure_runs.h"
#include "report/exhibits/figure_values.h"

namespace ridgeline::report {
namespace {

constexpr std::size_t kMostRuns = 8;

struct Owner {
  const char *category, *group;
};
// Twelve groups at most: the ledger's own categories are more than a reader can tell apart.
constexpr std::array<Owner, 19> kGroups = {{{"parameter", "parameters"},
                                            {"gradient", "gradients"},
                                            {"optimizer state", "optimizer state"},
                                            {"activation", "activations"},
                                            {"input", "input"},
                                            {"peer tensors", "peer: tensors"},
                                            {"peer process", "peer: beyond tensors"},
                                            {"libraries", "libraries and driver"},
                                            {"generated code", "libraries and driver"},
                                            {"context", "libraries and driver"},
                                            {"driver", "libraries and driver"},
                                            {"granularity", "temporaries and others"},
                                            {"heap", "heap, data and rest"},
                                            {"stacks", "heap, data and rest"},
                                            {"fragmentation", "heap, data and rest"},
                                            {"data files", "heap, data and rest"},
                                            {"loader", "heap, data and rest"},
                                            {"other runs", "other runs and programs"},
                                            {"other programs", "other runs and programs"}}};

std::string group_of(const MemoryEntry& entry) {
  for (const Owner& owner : kGroups) {
    if (entry.category == owner.category) return owner.group;
  }
  return entry.source == "planned" ? "temporaries and others" : "heap, data and rest";
}

// Owners with their bytes.
using Stack = std::vector<std::pair<std::string, double>>;

void add_to(Stack& stack, const std::string& owner, double bytes) {
  const auto found =
      std::ranges::find_if(stack, [&](const auto& each) { return each.first == owner; });
  if (found == stack.end()) {
    stack.emplace_back(owner, bytes);
  } else {
    found->second += bytes;
  }
}

struct Stacks {
  Stack planned, measured;
};

// As measured, the plan's arenas are one piece: planned memory that no step has touched is not
// there yet ("untouched" is negative).
Stacks stacks_of(const std::vector<MemoryEntry>& entries, const std::string& device) {
  Stacks stacks;
  double arenas = 0.0, tensors = 0.0, allocator = 0.0;
  Stack others;
  for (const MemoryEntry& entry : entries) {
    if (entry.device != device || entry.category == "total") continue;
    const auto bytes = static_cast<double>(entry.bytes);
    if (entry.source == "planned") {
      add_to(stacks.planned, group_of(entry), bytes);
      arenas += bytes;
    } else if (entry.category == "untouched") {
      arenas += bytes;
    } else if (entry.category == "peer allocator") {
      allocator = bytes;
    } else if (bytes != 0.0) {
      if (entry.category == "peer tensors") tensors = bytes;
      add_to(others, group_of(entry), bytes);
    }
  }
  // Without anything measured beside it the plan stands alone.
  if (others.empty() && allocator == 0.0) return stacks;
  if (arenas > 0.0) stacks.measured.emplace_back("the plan, as touched", arenas);
  stacks.measured.insert(stacks.measured.end(), others.begin(), others.end());
  // The allocator's blocks hold the tensors.
  if (allocator > tensors) {
    add_to(stacks.measured, "peer: beyond tensors", allocator - tensors);
  }
  return stacks;
}

double total_of(const Stack& stack) {
  double sum = 0.0;
  for (const auto& [owner, bytes] : stack) sum += bytes;
  return sum;
}

void add_stack(Figure& figure, const std::string& category, const Stack& stack) {
  if (stack.empty()) return;
  const double x = category_of(figure.x, category);
  for (const auto& [owner, bytes] : stack) {
    series_named(figure, owner, SeriesStyle::points).points.push_back({.x = x, .y = bytes});
  }
}

// Bars of the runs' own devices, or of the host beside a graphics processor.
Figure memory_figure(const ExhibitInput& input, const Share& share, bool host_beside) {
  const Names names(input.data, share.runs, {"kind"});
  std::string what = share.title;
  if (host_beside) what += (what.empty() ? "" : ", ") + std::string("the host's part");
  Figure figure = new_figure(input, "Memory by owner", what);
  figure.kind = FigureKind::bars;
  figure.stacked = figure.horizontal = true;
  Notes notes(input.data);
  double most = 0.0;
  for (const RunView* run : share.runs) {
    const std::string& own = run->run.executor.device;
    if (host_beside && own == "cpu") continue;
    const Stacks stacks =
        stacks_of(input.data.store().memory(run->run.id), host_beside ? "cpu" : own);
    if (stacks.planned.empty() && stacks.measured.empty()) continue;
    const std::string name = names.of(*run);
    if (!host_beside) add_stack(figure, "planned: " + name, stacks.planned);
    add_stack(figure, (host_beside ? "" : "measured: ") + name, stacks.measured);
    most = std::max({most, total_of(stacks.planned), total_of(stacks.measured)});
    notes.add(*run, name);
  }
  const DisplayUnit scale = bytes_unit(most);
  figure.y = {.title = "memory", .unit = scale.unit, .low = 0.0};
  for (Series& series : figure.series) {
    for (Point& point : series.points) point.y *= scale.factor;
  }
  figure.caption =
      host_beside
          ? "Resident memory of the process on the host beside a graphics processor, by owner."
          : "Memory where the network is computed, by owner: planned is what the step asks for, "
            "measured what system and driver report, with the plan's part as far as it was touched "
            "and everything around it.";
  figure.caption += names.common();
  notes.write(figure);
  return figure;
}

}  // namespace

std::vector<Figure> memory_figures(const ExhibitInput& input) {
  std::vector<Figure> figures;
  const Runs runs = chosen(input.runs, [&](const RunView& run) {
    return !input.data.store().memory(run.run.id).empty();
  });
  const auto count = [](const Runs& some) { return some.size() > kMostRuns ? kMostSeries + 1 : 1; };
  const std::vector<Share> shares =
      split(input.data, runs, {"kind"}, {"model", "machine", "executor"}, count);
  for (const bool host_beside : {false, true}) {
    for (const Share& share : shares) put(figures, memory_figure(input, share, host_beside));
  }
  return figures;
}

}  // namespace ridgeline::report
