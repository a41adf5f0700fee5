#include "predict/predict.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline::predict {
namespace {

// More than this on kinds that no run had is a guess.
constexpr double kMostUnseen = 0.5;
// Of the board's power, by the readings of an H200 over all networks (docs/examples/index.html):
// long steps keep it busy, short ones leave it waiting.
constexpr double kLongStep = 5e-3;
constexpr Range kLongShare = {0.6, 0.95}, kShortShare = {0.2, 0.6};
// What a library needs beside our arenas on a GPU: context, kernels, batches on their way
// (bench/results/lab_h200.md).
constexpr double kContextBytes = 1.2e9;
// What a spread is made of errors of, where too few runs were held back.
constexpr std::size_t kFewHeldBack = 5;

Observation step_of(const Question& question, const PlannedWork& plan) {
  Observation step = observation_of(question.work, question.target, plan.steps);
  step.backend =
      question.backend.empty() ? usual_backend(question.target.family) : question.backend;
  return step;
}

std::vector<Share> shares_of(const Observation& step, const Estimate& estimate) {
  std::map<std::string, Share> by_group;
  std::map<std::string, double> least, longest;
  for (const auto& [kind, part] : step.demand) {
    const std::size_t bar = kind.find(" | ");
    const std::string ops = kind.substr(0, bar);
    const double seconds = estimate.efficiencies.seconds(kind, part) * estimate.correction;
    Share& share = by_group[ops];
    share.ops = ops;
    share.steps += part.steps;
    share.seconds += seconds;
    least[ops] += part.roof_seconds;
    if (seconds > longest[ops]) {
      longest[ops] = seconds;
      share.roof = kind.substr(bar + 3);
    }
  }
  std::vector<Share> shares;
  for (auto& [ops, share] : by_group) {
    share.efficiency = share.seconds > 0.0 ? least[ops] / share.seconds : 0.0;
    shares.push_back(std::move(share));
  }
  std::ranges::sort(shares, std::ranges::greater{}, &Share::seconds);
  return shares;
}

std::optional<Range> joules_of(const Prediction& made) {
  if (!made.target.watts || made.target.family != Family::gpu) return std::nullopt;
  const Range share = made.seconds >= kLongStep ? kLongShare : kShortShare;
  return Range{made.range.low * share.low * *made.target.watts,
               made.range.high * share.high * *made.target.watts};
}

void refuse_without_ground(const Observation& step, const Estimate& estimate) {
  if (estimate.unseen_share <= kMostUnseen) return;
  std::vector<std::string> unseen;
  for (const auto& [kind, part] : step.demand) {
    if (!estimate.efficiencies.knows(kind)) unseen.push_back(kind);
  }
  bad_input(
      "{:.0f}% of the time of {} in {} on {} would stand on kinds of work that no known run of "
      "{} had: {}",
      100.0 * estimate.unseen_share, step.network, step.precision, step.device, step.backend,
      listed(unseen));
}

}  // namespace

std::string usual_backend(Family family) { return family == Family::gpu ? "auto" : "native"; }

Range Prediction::epoch_seconds(std::int64_t samples) const {
  const double steps = std::ceil(static_cast<double>(samples) / static_cast<double>(batch));
  return {range.low * steps, range.high * steps};
}

Predictor::Predictor(const Knowledge& knowledge)
    : knowledge_(knowledge), held_(hold_back(knowledge.seen())), spreads_(spreads_of(held_)) {}

const PlannedWork& Predictor::plan(const Question& question) {
  const Observation name = observation_of(question.work, question.target, {});
  const std::string key =
      fmt::format("{} {} {} {} {}", name_of(question.target.family), name.network,
                  question.work.step.model.classes, name.batch, name.precision);
  const auto found = plans_.find(key);
  if (found != plans_.end()) return found->second;
  return plans_[key] = planned(question.work, question.target.family);
}

std::optional<double> Predictor::known_spread(const Observation& step, Unknown unknown) const {
  const auto held = spreads_.find({step.family, step.backend, unknown});
  const auto count = std::ranges::count_if(held_, [&](const HeldBack& one) {
    return one.unknown == unknown && one.observation->family == step.family &&
           one.observation->backend == step.backend;
  });
  if (held != spreads_.end() && static_cast<std::size_t>(count) >= kFewHeldBack) {
    return held->second;
  }
  const Shipped* shipped = knowledge_.shipped(step.family, step.backend);
  if (shipped != nullptr && shipped->spread.contains(unknown)) return shipped->spread.at(unknown);
  return std::nullopt;
}

double Predictor::spread(const Observation& step, const Estimate& estimate,
                         std::string& basis) const {
  if (const auto known = known_spread(step, estimate.unknown)) return *known;
  // No device was ever held back, as there is one only: the error of a new network and the largest
  // of a new device among all others must do.
  double network = 0.0, device = 0.0;
  for (const Shipped& one : knowledge_.all_shipped()) {
    const auto other = one.spread.find(Unknown::device);
    if (other != one.spread.end()) device = std::max(device, other->second);
  }
  for (const auto& [key, value] : spreads_) {
    if (std::get<Unknown>(key) == Unknown::device) device = std::max(device, value);
  }
  if (const auto known = known_spread(step, Unknown::network)) network = *known;
  if (estimate.unknown == Unknown::device && network > 0.0 && device > 0.0) {
    basis += "; the error of a new device is that of other backends";
    return std::hypot(network, device);
  }
  bad_input(
      "too few runs of {} on a {} were held back to tell how wrong a prediction for {} is; add "
      "runs of other networks and batches",
      step.backend, name_of(step.family), step.device);
}

Prediction Predictor::predict(const Question& question) {
  const PlannedWork& planned_work = plan(question);
  const Observation step = step_of(question, planned_work);
  const std::optional<Estimate> estimate = knowledge_.estimate(step);
  if (!estimate) {
    const std::vector<std::string> known = knowledge_.backends(step.family);
    bad_input("nothing is known of {} on a {}: {}", step.backend, name_of(step.family),
              known.empty() ? "there are no runs, and the shipped efficiencies are off"
                            : "known backends are " + joined(known, ", "));
  }
  refuse_without_ground(step, *estimate);

  Prediction made;
  made.model = step.model;
  made.precision = step.precision;
  made.backend = step.backend;
  made.inference = question.work.inference;
  const ModelConfig& model = question.work.step.model;
  made.image = fmt::format("{}x{}x{}", model.channels, model.height, model.width);
  made.batch = step.batch;
  made.target = question.target;
  made.estimate = *estimate;
  made.seconds = estimate->seconds;
  made.basis = estimate->runs == 0 ? "shipped efficiencies"
               : estimate->shipped ? fmt::format("{} runs and shipped efficiencies", estimate->runs)
                                   : fmt::format("{} runs", estimate->runs);
  made.basis += fmt::format("; new {}", name_of(estimate->unknown));
  const double factor = std::exp(spread(step, *estimate, made.basis));
  made.range = {made.seconds / factor, made.seconds * factor};
  // A batch errs no more than the network does.
  made.batch_factor =
      std::min(factor, std::exp(known_spread(step, Unknown::batch).value_or(std::log(factor))));
  made.memory_bytes = planned_work.memory_bytes;
  if (question.target.memory_bytes) {
    const double context = question.target.family == Family::gpu ? kContextBytes : 0.0;
    const auto room = static_cast<std::int64_t>(*question.target.memory_bytes - context);
    made.fits = made.memory_bytes <= room;
    if (question.largest_batch) {
      made.largest_batch = largest_batch_within(question.work, question.target.family, room);
    }
  }
  made.joules = joules_of(made);
  made.shares = shares_of(step, *estimate);
  return made;
}

}  // namespace ridgeline::predict
