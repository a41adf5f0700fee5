// Rows that cannot be: values out of their range, and rows that stand there twice.

#include <cmath>
#include <unordered_map>

#include "audit/checks/checks.h"
#include "audit/context.h"
#include "base/text.h"

namespace ridgeline::audit {
namespace {

bool is_positive_role(Role role) {
  switch (role) {
    case Role::batch:
    case Role::batch_time:
    case Role::image_time:
    case Role::epoch_time:
    case Role::total_time:
    case Role::throughput:
    case Role::flop_rate:
    case Role::parameters:
    case Role::flops:
    case Role::macs:
    case Role::speedup:
    case Role::intensity:
      return true;
    default:
      return false;
  }
}

bool is_share_role(Role role) {
  return role == Role::accuracy || role == Role::final_accuracy || role == Role::best_accuracy ||
         role == Role::train_accuracy || role == Role::utilisation || role == Role::majority;
}

// Why the value cannot be; empty: it can.
std::string impossible(const Column& column, double value) {
  // Numbers of iterations begin anywhere.
  const bool signless =
      column.role != Role::loss && column.role != Role::iteration && column.role != Role::epoch;
  if (value < 0.0 && signless) return "negative";
  if (value == 0.0 && is_positive_role(column.role)) return "zero";
  // CPU utilisation of several cores may exceed 100%, of a device or an accuracy never.
  const bool cores = column.role == Role::utilisation && device_kind(column.name) == "cpu";
  if (is_share_role(column.role) && value > 1.0005 && !cores) return "above 100%";
  return {};
}

bool is_not_finite(std::string word) {
  for (char& c : word) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (word.starts_with('-') || word.starts_with('+')) word.erase(0, 1);
  return word == "nan" || word == "inf" || word == "infinity" || word == "∞";
}

}  // namespace

void check_impossible_values(Context& context, Findings& findings) {
  for (const Column& column : context.table().columns) {
    if (column.role == Role::none || column.is_words()) continue;
    std::vector<std::size_t> rows;
    std::string why;
    for (std::size_t row = 0; row < context.table().rows(); ++row) {
      if (!column.has(row)) continue;
      const std::string reason = impossible(column, column.value(row));
      if (reason.empty()) continue;
      if (why.empty()) why = reason;
      rows.push_back(row);
    }
    if (!rows.empty()) {
      findings.push_back(found(
          "impossible-values", Severity::error, Confidence::certain,
          fmt::format("{} is {} in {} row{}: {} {}", column.name, why, rows.size(),
                      rows.size() == 1 ? "" : "s",
                      plain_number(column.value(rows.front()) / column.scale), column.unit),
          why == "zero" ? "0 often stands for 'not measured'; leave the cell empty" : "", rows));
    }
    std::vector<std::size_t> not_finite;
    for (const BadCell& cell : column.bad) {
      if (is_not_finite(cell.text)) not_finite.push_back(cell.row);
    }
    if (!not_finite.empty()) {
      findings.push_back(found("impossible-values", Severity::error, Confidence::certain,
                               fmt::format("{} is NaN or infinite in {} row{}", column.name,
                                           not_finite.size(), not_finite.size() == 1 ? "" : "s"),
                               column.role == Role::loss
                                   ? "the training diverged: a learning rate that is too high"
                                   : "",
                               not_finite));
    }
  }
}

void check_duplicate_rows(Context& context, Findings& findings) {
  const Table& table = context.table();
  // Short numbers are equal by chance: a row needs something measured with four digits or more.
  std::vector<const Column*> measured;
  for (const Column& column : table.columns) {
    const Dimension dimension = info_of(column.role).dimension;
    if (dimension == Dimension::time || dimension == Dimension::throughput) {
      measured.push_back(&column);
    }
  }
  if (measured.empty()) return;
  std::unordered_map<std::uint64_t, std::size_t> first;
  std::vector<std::size_t> repeated;
  std::size_t example = 0;
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto [place, fresh] = first.emplace(table.hashes[row], row);
    if (fresh) continue;
    const bool exact = std::any_of(measured.begin(), measured.end(), [&](const Column* column) {
      return column->has(row) && column->rounding(row) < 1e-3;
    });
    if (!exact) continue;
    if (repeated.empty()) example = place->second;
    repeated.push_back(row);
  }
  // Among very many rows two agree by chance.
  if (repeated.size() * 10'000 < table.rows() || repeated.empty()) return;
  const bool numbered = table.find(Role::iteration) != nullptr ||
                        table.find(Role::epoch) != nullptr ||
                        table.find(Role::timestamp) != nullptr;
  findings.push_back(found(
      "duplicate-rows", numbered ? Severity::error : Severity::warning, Confidence::certain,
      fmt::format("{} row{} repeat{} another one in every cell: line {} repeats line {}",
                  count_text(std::ssize(repeated)), repeated.size() == 1 ? "" : "s",
                  repeated.size() == 1 ? "s" : "", table.lines[repeated.front()],
                  table.lines[example]),
      "a file was written or joined twice; repeats of a measurement never agree in all digits",
      repeated));
}

}  // namespace ridgeline::audit
