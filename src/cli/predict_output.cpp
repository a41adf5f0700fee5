#include "cli/predict_output.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <set>

#include "base/json_text.h"
#include "base/text.h"
#include "cli/output.h"
#include "cli/tables.h"

namespace ridgeline::cli {
namespace {

using nlohmann::ordered_json;
using predict::HeldBack;
using predict::Prediction;
using predict::Range;

std::string range_text(const Range& range, double unit) {
  return fmt::format("{:.3g} - {:.3g}", range.low / unit, range.high / unit);
}

std::string work_text(const Prediction& row) {
  return fmt::format("{} {}{}", row.model, row.image, row.inference ? " inference" : "");
}

constexpr double kHour = 3600.0, kKiloWattHour = 3.6e6;

std::optional<Range> cost_of(const Prediction& row, std::int64_t samples) {
  if (!row.per_hour || samples == 0) return std::nullopt;
  const Range seconds = row.epoch_seconds(samples);
  return Range{seconds.low / kHour * *row.per_hour, seconds.high / kHour * *row.per_hour};
}

std::optional<Range> epoch_of(const Prediction& row, std::int64_t samples) {
  if (samples == 0) return std::nullopt;
  return row.epoch_seconds(samples);
}

// Nothing where no samples are told.
const predict::Training* training_of(const PredictionView& view, std::size_t row) {
  return view.trainings.empty() ? nullptr : &view.trainings[row];
}

// The ends of its time, energy and cost.
std::array<std::optional<double>, 6> ends_of(const predict::Training* training) {
  std::array<std::optional<double>, 6> ends;
  if (training == nullptr) return ends;
  ends[0] = training->seconds.low;
  ends[1] = training->seconds.high;
  if (training->joules) {
    ends[2] = training->joules->low;
    ends[3] = training->joules->high;
  }
  if (training->cost) {
    ends[4] = training->cost->low;
    ends[5] = training->cost->high;
  }
  return ends;
}

std::string frontier_text(const predict::Training* training) {
  if (training == nullptr || !training->frontier) return "n/a";
  return *training->frontier ? "yes" : "no";
}

std::string or_na(const std::optional<Range>& range) {
  return range ? range_text(*range, 1.0) : "n/a";
}

std::string largest_text(const Prediction& row) {
  return row.largest_batch ? count_text(*row.largest_batch) : "n/a";
}

// Which ops take the time of one prediction.
std::string shares_text(const Prediction& row, std::int64_t top) {
  TextTable table({"op and shape", "steps", "time", "share", "of the roof", "roof"}, "lrrrrl");
  table.important({"op and shape", "time", "share", "of the roof", "roof", "steps"});
  const std::size_t shown_rows =
      std::min(row.shares.size(), static_cast<std::size_t>(std::max<std::int64_t>(top, 0)));
  for (std::size_t i = 0; i < shown_rows; ++i) {
    const predict::Share& share = row.shares[i];
    table.add_row({share.ops, fmt::format("{:.0f}", share.steps), duration_text(share.seconds),
                   fmt::format("{:.0f}%", 100.0 * share.seconds / row.seconds),
                   fmt::format("{:.0f}%", 100.0 * share.efficiency), share.roof});
  }
  return shown(table);
}

ordered_json range_json(const std::optional<Range>& range) {
  if (!range) return nullptr;
  return {{"low", range->low}, {"high", range->high}};
}

ordered_json training_json(const predict::Training& training) {
  ordered_json json = {{"seconds", range_json(training.seconds)},
                       {"joules", range_json(training.joules)},
                       {"cost", range_json(training.cost)},
                       {"frontier", nullptr}};
  if (training.frontier) json["frontier"] = *training.frontier;
  return json;
}

ordered_json row_json(const Prediction& row, const predict::Training* training,
                      const PredictionView& view) {
  ordered_json json = {{"model", row.model},
                       {"kind", row.inference ? "inference" : "training"},
                       {"image", row.image},
                       {"batch", row.batch},
                       {"precision", row.precision},
                       {"target", row.target.name},
                       {"family", predict::name_of(row.target.family)},
                       {"backend", row.backend},
                       {"step_ms", row.seconds * 1e3},
                       {"low_ms", row.range.low * 1e3},
                       {"high_ms", row.range.high * 1e3},
                       {"samples_per_second", row.samples_per_second()},
                       {"memory_bytes", row.memory_bytes},
                       {"fits", row.fits},
                       {"largest_batch", nullptr},
                       {"joules", range_json(row.joules)},
                       {"epoch_seconds", range_json(epoch_of(row, view.samples))},
                       {"epoch_cost", range_json(cost_of(row, view.samples))},
                       {"training", nullptr},
                       {"basis", row.basis},
                       {"source", row.target.source}};
  if (row.largest_batch) json["largest_batch"] = *row.largest_batch;
  if (training != nullptr) json["training"] = training_json(*training);
  json["ops"] = ordered_json::array();
  for (const predict::Share& share : row.shares) {
    json["ops"].push_back({{"op", share.ops},
                           {"steps", share.steps},
                           {"ms", share.seconds * 1e3},
                           {"efficiency", share.efficiency},
                           {"roof", share.roof}});
  }
  return json;
}

std::string backend_text(const predict::CheckRow& row) {
  return fmt::format("{} on {}", row.backend, predict::name_of(row.family));
}

}  // namespace

std::vector<std::string> prediction_columns() {
  return {"network", "batch", "precision",     "on",      "step ms",  "range ms",   "img/s",
          "memory",  "fits",  "largest batch", "step J",  "epoch s",  "epoch cost", "hours",
          "kWh",     "cost",  "frontier",      "backend", "stands on"};
}

std::string prediction_text(const PredictionView& view) {
  TextTable table(prediction_columns(), "lrllrrrrlrrrrrrrlll");
  if (view.trainings.empty()) {
    table.important({"network", "on", "step ms", "range ms", "batch", "precision", "img/s",
                     "largest batch", "memory", "fits", "step J", "stands on"});
  } else {
    table.important({"network", "on", "batch", "precision", "hours", "frontier", "cost", "kWh",
                     "step ms", "fits", "range ms", "largest batch", "memory", "img/s",
                     "stands on"});
  }
  for (std::size_t i = 0; i < view.rows.size(); ++i) {
    const Prediction& row = view.rows[i];
    const predict::Training* training = training_of(view, i);
    const std::optional<Range> epoch = epoch_of(row, view.samples);
    table.add_row({work_text(row), fmt::format("{}", row.batch), row.precision, row.target.name,
                   fmt::format("{:.4g}", row.seconds * 1e3), range_text(row.range, 1e-3),
                   fmt::format("{:.4g}", row.samples_per_second()), bytes_text(row.memory_bytes),
                   row.fits ? "yes" : "no", largest_text(row), or_na(row.joules), or_na(epoch),
                   or_na(cost_of(row, view.samples)),
                   training == nullptr ? "n/a" : range_text(training->seconds, kHour),
                   training == nullptr || !training->joules
                       ? "n/a"
                       : range_text(*training->joules, kKiloWattHour),
                   training == nullptr ? "n/a" : or_na(training->cost), frontier_text(training),
                   row.backend, row.basis});
  }
  std::string text = view.rows.empty() ? "" : shown_main(table);
  for (const Prediction& row : view.rows) {
    if (view.top < 1) break;
    text += fmt::format("\n{}, batch {}, {}, on {}: where the time goes\n\n{}", work_text(row),
                        row.batch, row.precision, row.target.name, shares_text(row, view.top));
  }
  std::string remarks;
  if (!view.rows.empty()) {
    remarks += "\nRange: 9 of 10 held-back runs lay within it (ridgeline predict --check).\n";
    if (!view.currency.empty()) remarks += "Cost in " + view.currency + ".\n";
    if (!view.trainings.empty()) {
      remarks += fmt::format(
          "Hours, kWh and cost are those of the whole training. Frontier: no other row of the "
          "network is better in time or {} without being worse in the other.\n",
          predict::name_of(predict::effort_of(view.rows)));
    }
  }
  for (const std::string& reason : view.refused) remarks += "refused: " + reason + "\n";
  return text + fitted(remarks);
}

std::string prediction_json(const PredictionView& view) {
  ordered_json rows = ordered_json::array();
  for (std::size_t i = 0; i < view.rows.size(); ++i) {
    rows.push_back(row_json(view.rows[i], training_of(view, i), view));
  }
  return json_document(ordered_json{{"predictions", std::move(rows)}, {"refused", view.refused}});
}

std::string prediction_csv(const PredictionView& view) {
  std::string text =
      "model,kind,image,batch,precision,target,backend,step_ms,low_ms,high_ms,samples_per_second,"
      "memory_bytes,fits,largest_batch,joules_low,joules_high,epoch_seconds_low,"
      "epoch_seconds_high,epoch_cost_low,epoch_cost_high,training_seconds_low,"
      "training_seconds_high,training_joules_low,training_joules_high,training_cost_low,"
      "training_cost_high,frontier,basis\n";
  const auto low = [](const std::optional<Range>& range) {
    return range ? std::optional(range->low) : std::nullopt;
  };
  const auto high = [](const std::optional<Range>& range) {
    return range ? std::optional(range->high) : std::nullopt;
  };
  for (std::size_t i = 0; i < view.rows.size(); ++i) {
    const Prediction& row = view.rows[i];
    const predict::Training* made = training_of(view, i);
    const auto ends = ends_of(made);
    const std::optional<Range> cost = cost_of(row, view.samples);
    const std::optional<Range> epoch = epoch_of(row, view.samples);
    text += csv_line(row.model, row.inference ? "inference" : "training", row.image, row.batch,
                     row.precision, row.target.name, row.backend, row.seconds * 1e3,
                     row.range.low * 1e3, row.range.high * 1e3, row.samples_per_second(),
                     row.memory_bytes, row.fits ? "yes" : "no", row.largest_batch, low(row.joules),
                     high(row.joules), low(epoch), high(epoch), low(cost), high(cost), ends[0],
                     ends[1], ends[2], ends[3], ends[4], ends[5],
                     made == nullptr ? "" : frontier_text(made), row.basis);
  }
  return text;
}

std::string check_text(const CheckView& view) {
  TextTable table(
      {"backend", "left out", "runs", "median error", "90th percentile", "in the range"}, "llrrrr");
  table.important({"backend", "left out", "median error", "90th percentile", "in the range"});
  for (const predict::CheckRow& row : check_rows(view.held)) {
    table.add_row({backend_text(row), std::string(predict::name_of(row.unknown)),
                   fmt::format("{}", row.runs), percent_text(row.median_error),
                   percent_text(row.ninth_decile), share_or_na(row.inside_share)});
  }
  std::string text = shown_main(table);
  text +=
      "\nEach run is predicted from runs without its batch, without its network on any device, and "
      "without its device; the range comes from the errors of the other runs. Shipped efficiencies "
      "are not used.\n";
  std::set<const predict::Observation*> runs, disturbed;
  for (const HeldBack& one : view.held) {
    runs.insert(one.observation);
    if (one.observation->disturbed) disturbed.insert(one.observation);
  }
  if (!disturbed.empty()) {
    text += fmt::format(
        "{} of {} runs were disturbed by other programs: their errors are not only "
        "the prediction's.\n",
        disturbed.size(), runs.size());
  }
  for (const std::string& reason : view.left_out) text += "not used: " + reason + "\n";
  return fitted(text);
}

std::string check_json(const CheckView& view) {
  ordered_json rows = ordered_json::array(), runs = ordered_json::array();
  for (const predict::CheckRow& row : check_rows(view.held)) {
    rows.push_back({{"family", predict::name_of(row.family)},
                    {"backend", row.backend},
                    {"left_out", predict::name_of(row.unknown)},
                    {"runs", row.runs},
                    {"median_error", row.median_error},
                    {"p90_error", row.ninth_decile},
                    {"inside_share", nullptr}});
    if (row.inside_share) rows.back()["inside_share"] = *row.inside_share;
  }
  for (const HeldBack& one : view.held) {
    runs.push_back({{"source", one.observation->source},
                    {"device", one.observation->device},
                    {"backend", one.observation->backend},
                    {"network", one.observation->network},
                    {"batch", one.observation->batch},
                    {"precision", one.observation->precision},
                    {"left_out", predict::name_of(one.unknown)},
                    {"measured_ms", one.observation->seconds * 1e3},
                    {"predicted_ms", one.predicted_seconds * 1e3}});
  }
  return json_document(ordered_json{
      {"check", std::move(rows)}, {"runs", std::move(runs)}, {"not_used", view.left_out}});
}

std::string check_csv(const CheckView& view) {
  std::string text =
      "source,device,backend,network,batch,precision,left_out,measured_ms,predicted_ms,error\n";
  for (const HeldBack& one : view.held) {
    const predict::Observation& run = *one.observation;
    text += csv_line(run.source, run.device, run.backend, run.network, run.batch, run.precision,
                     predict::name_of(one.unknown), run.seconds * 1e3, one.predicted_seconds * 1e3,
                     one.predicted_seconds / run.seconds - 1.0);
  }
  return text;
}

}  // namespace ridgeline::cli
