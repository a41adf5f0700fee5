#include "cli/difference_output.h"

#include <array>

#include "base/error.h"
#include "base/text.h"
#include "cli/options.h"
#include "cli/parser.h"
#include "cli/tables.h"

namespace ridgeline::cli {
namespace {

constexpr std::size_t kMostNamed = 3;

// "conv1, relu1", or "conv1 … fc2 (7)".
std::string few(const std::vector<std::string>& names, const char* separator) {
  if (names.size() <= kMostNamed) return joined(names, separator);
  return fmt::format("{} … {} ({})", names.front(), names.back(), names.size());
}

std::string plain_ms(double seconds) { return fmt::format("{:.4f}", 1e3 * seconds); }
std::string signed_ms(double seconds) { return fmt::format("{:+.4f}", 1e3 * seconds); }

std::string speedup_text(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.2f}x", *ratio) : "n/a";
}

std::string steps_text(const DifferenceRow& row) {
  if (row.kind == RowKind::between_steps) return "";
  return fmt::format("{}:{}", row.steps_a, row.steps_b);
}

// The time between steps is the whole iteration, measured without timing single steps, less the
// times of the steps.
std::string below_zero_text(const StepDifference& difference) {
  constexpr double kMatters = 0.02;
  for (const DifferenceRow& row : difference.rows) {
    if (row.kind != RowKind::between_steps) continue;
    const bool a = row.a < -kMatters * difference.total_a;
    const bool b = row.b < -kMatters * difference.total_b;
    if (!a && !b) return {};
    return fmt::format(
        "the time between steps is negative: {} steps, timed one by one, took longer than the "
        "whole iteration (a busy machine, overlapping steps, or the cost of timing)\n",
        a && b ? "each side's"
        : a    ? "A's"
               : "B's");
  }
  return {};
}

}  // namespace

void add_difference_options(Parser& command, DifferenceArguments& arguments, const Option* with) {
  command
      .add_option("--by NAME", arguments.by,
                  "Rows of --ops: op, layer, or step (the smallest groups of steps that do the "
                  "same work in A and B)")
      ->needs(with);
  command
      .add_option("--top N", arguments.top,
                  "Show N rows of --ops; the others become one [default: all]")
      ->needs(with);
}

DifferenceOptions difference_options(const DifferenceArguments& arguments, bool force) {
  static constexpr std::array<std::string_view, 3> kNames = {"op", "layer", "step"};
  if (arguments.top && *arguments.top < 1) {
    bad_input("--top {}: must be at least 1", *arguments.top);
  }
  return {.by = static_cast<DifferenceBy>(choice_of("--by", arguments.by, kNames)),
          .top = arguments.top,
          .force = force};
}

std::string difference_text(const StepDifference& difference) {
  std::string text = fmt::format("A  {}\nB  {}\n", difference.name_a, difference.name_b);
  for (const std::string& warning : difference.warnings) text += "warning: " + warning + '\n';
  text += fmt::format(
      "\nTimes are in ms{}. share: part of the whole difference. A/B: how many times as fast "
      "B is. "
      "steps: in A's plan : in B's plan.\n",
      difference.per_sample ? " per sample" : "");
  TextTable table({"layer", "op", "phase", "steps", "A", "B", "B - A", "share", "A/B", "note"},
                  "lllrrrrrrl");
  for (const DifferenceRow& row : difference.rows) {
    const bool between = row.kind == RowKind::between_steps;
    const bool others = row.kind == RowKind::others;
    const std::optional<double> share = share_of(difference, row);
    const bool one_sided = row.kind == RowKind::only_a || row.kind == RowKind::only_b;
    table.add_row({between  ? "between steps"
                   : others ? fmt::format("{} other{}", row.rows, row.rows == 1 ? "" : "s")
                            : few(row.layers, ", "),
                   between || others ? "" : few(row.ops, "+"),
                   between || others ? "" : few(row.phases, "+"), steps_text(row),
                   row.kind == RowKind::only_b ? "" : plain_ms(row.a),
                   row.kind == RowKind::only_a ? "" : plain_ms(row.b), signed_ms(row.difference()),
                   share ? fmt::format("{:.1f}%", 100.0 * *share) : "n/a",
                   one_sided || between ? "" : speedup_text(row.speedup()),
                   one_sided ? std::string(name_of(row.kind)) : ""});
  }
  table.add_row({"total", "", "", "", plain_ms(difference.total_a), plain_ms(difference.total_b),
                 signed_ms(difference.difference()),
                 difference.difference() != 0.0 ? "100.0%" : "n/a",
                 speedup_text(difference.speedup()), ""});
  return text + shown(table) + below_zero_text(difference);
}

}  // namespace ridgeline::cli
