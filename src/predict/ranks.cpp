#include "predict/ranks.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"

namespace ridgeline::predict {
namespace {

// Exchanges and what computing takes at the target's efficiencies. What the steps of the divided
// plan add up to is what the undivided one is predicted to take.
std::vector<RankStep> rank_steps(const DividedWork& divided, const Prediction& one) {
  std::vector<RankStep> steps;
  double computed = 0.0;
  for (std::size_t i = 0; i < divided.steps.size(); ++i) {
    RankStep step;
    if (divided.exchanged_bytes[i] > 0.0) {
      step.bytes = divided.exchanged_bytes[i];
      step.needed_by = divided.needed_by[i];
      step.beside = step.needed_by > 0;
    } else {
      const StepDemand demand = demand_of(divided.steps[i], one.target);
      step.seconds = one.estimate.efficiencies.seconds(demand.kind, {demand.least_seconds, 1.0});
      computed += step.seconds;
    }
    steps.push_back(step);
  }
  for (RankStep& step : steps) step.seconds *= one.seconds / computed;
  return steps;
}

}  // namespace

std::string_view name_of(Scaling scaling) { return scaling == Scaling::weak ? "weak" : "strong"; }

RankedStep simulate(const std::vector<RankStep>& steps, const Network& network, int ranks,
                    int place, double slower, bool overlap) {
  RankedStep all;
  double now = 0.0, computed = 0.0, queue = 0.0;  // when the queue of exchanges is free
  std::vector<std::pair<int, double>> under_way;  // needed by which step, done when
  const auto wait_for = [&](int step) {
    for (const auto& [needed_by, done] : under_way) {
      if (needed_by <= step) now = std::max(now, done);
    }
    std::erase_if(under_way, [&](const auto& one) { return one.first <= step; });
  };
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const RankStep& step = steps[i];
    wait_for(static_cast<int>(i));
    if (step.bytes <= 0.0) {
      now += step.seconds * slower;
      computed += step.seconds * slower;
      continue;
    }
    const double takes = network.seconds(step.bytes, ranks, place);
    all.exchange += takes;
    if (!overlap || !step.beside) {
      now = std::max(now, queue) + takes;
      queue = now;
      continue;
    }
    queue = std::max(now, queue) + takes;
    under_way.emplace_back(step.needed_by, queue);
  }
  wait_for(static_cast<int>(steps.size()));
  all.seconds = now;
  all.exposed = now - computed;
  return all;
}

RankPrediction predict_ranks(Predictor& predictor, const Question& question, const Network& network,
                             int ranks, Scaling scaling) {
  const std::int64_t batch = question.work.step.batch;
  if (question.work.inference) bad_input("--ranks: ranks share training steps, not inference");
  if (scaling == Scaling::strong && batch % ranks != 0) {
    bad_input("{} ranks cannot share a batch of {} evenly", ranks, batch);
  }
  RankPrediction made;
  made.scaling = scaling;
  made.ranks = ranks;
  made.nodes = network.nodes(ranks);
  made.network = network.name();
  made.rank_batch = scaling == Scaling::weak ? batch : batch / ranks;
  Question part = question;
  part.work.step.batch = made.rank_batch;
  made.one = predictor.predict(part);
  // What one rank takes for the whole batch.
  const double alone =
      scaling == Scaling::weak ? made.one.seconds : predictor.predict(question).seconds;
  const double share = scaling == Scaling::weak ? 1.0 : 1.0 / ranks;
  if (ranks == 1) {
    made.seconds = made.one.seconds;
    made.range = made.one.range;
    made.efficiency = made.efficiency_range.low = made.efficiency_range.high = 1.0;
    return made;
  }
  const std::vector<RankStep> steps =
      rank_steps(divided(part.work, question.target.family, ranks), made.one);
  for (const RankStep& step : steps) made.exchange_bytes += step.bytes;
  // Cores that sum gradients do not compute meanwhile; a network's adapter copies by itself.
  const bool shared_memory =
      question.target.family == Family::cpu && network.within_one_node(ranks);
  const RankedStep usual = simulate(steps, network, ranks, 1, 1.0, !shared_memory);
  made.seconds = usual.seconds;
  made.exchange_seconds = usual.exchange;
  made.exposed_seconds = usual.exposed;
  made.efficiency = alone * share / usual.seconds;
  const double factor = made.one.range.high / made.one.seconds;
  // What is divided by what are then two batches' times, each of which may be off by itself.
  const double ratio = scaling == Scaling::weak ? 1.0 : made.one.batch_factor;
  made.range = {usual.seconds, usual.seconds};
  made.efficiency_range = {made.efficiency, made.efficiency};
  for (const double slower : {1.0 / factor, 1.0, factor}) {
    for (const int place : {0, 2}) {
      for (const bool overlap : {false, true}) {
        if (!overlap && question.target.family == Family::gpu) continue;
        const double seconds = simulate(steps, network, ranks, place, slower, overlap).seconds;
        const double efficiency = alone * share * slower / seconds;
        made.range.low = std::min(made.range.low, seconds);
        made.range.high = std::max(made.range.high, seconds);
        made.efficiency_range.low = std::min(made.efficiency_range.low, efficiency / ratio);
        made.efficiency_range.high = std::max(made.efficiency_range.high, efficiency * ratio);
      }
    }
  }
  return made;
}

}  // namespace ridgeline::predict
