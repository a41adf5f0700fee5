#include "backends/search.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "base/clock.h"
#include "plan/measure.h"
#include "plan/session.h"

namespace ridgeline {
namespace {

// A problem changes hands only for a gain of more than this share of its time: less is noise.
constexpr double kLeastGain = 0.03;
// Problems that a provider which measures is asked for at once, the share of a run below which all
// of a problem's steps are not worth asking, and about how long one answer takes.
constexpr std::size_t kAtOnce = 4;
constexpr double kLeastShare = 5e-4, kSecondsEach = 0.5;

// What decides the time of a step: the kernel, its problem and its layouts.
std::string step_key(const Plan& plan, const Step& step) {
  std::string key = step.kernel_name();
  if (!step.is_reorder()) key += ' ' + make_problem(*plan.graph, step.nodes).text();
  for (const auto* forms : {&step.inputs, &step.outputs}) {
    for (const FormId id : *forms) {
      key += '|';
      if (id == kNoForm) continue;
      const Form& form = plan.form(id);
      key += plan.graph->value(form.value).spec.shape.text() + form.layout.text();
    }
  }
  return key;
}

// The node that a step belongs to: its first one, or that of the step which a reorder serves.
std::vector<NodeId> owners_of(const Plan& plan) {
  std::vector<NodeId> owners(plan.steps.size(), kNoNode);
  std::map<FormId, NodeId> reader, writer;
  for (const Step& step : plan.steps) {
    if (step.is_reorder()) continue;
    for (const FormId form : step.inputs) reader.try_emplace(form, step.nodes[0]);
    for (const FormId form : step.outputs) writer.try_emplace(form, step.nodes[0]);
  }
  for (std::size_t s = 0; s < owners.size(); ++s) {
    const Step& step = plan.steps[s];
    if (!step.is_reorder()) {
      owners[s] = step.nodes[0];
    } else if (const auto user = reader.find(step.outputs[0]); user != reader.end()) {
      owners[s] = user->second;
    } else if (const auto maker = writer.find(step.inputs[0]); maker != writer.end()) {
      owners[s] = maker->second;
    }
  }
  return owners;
}

// What the search keeps of a plan: for each step the nodes it covers, its owner, what it executes
// and its time.
struct TimedSteps {
  std::vector<std::vector<NodeId>> nodes;
  std::vector<NodeId> owners;
  std::vector<Cost> work;
  std::vector<double> seconds;

  [[nodiscard]] double sum() const { return std::accumulate(seconds.begin(), seconds.end(), 0.0); }
};

// Sets of nodes that steps of either plan cover together.
class NodeSets {
 public:
  explicit NodeSets(std::size_t nodes) : parent_(nodes) {
    std::iota(parent_.begin(), parent_.end(), std::size_t{0});
  }
  std::size_t find(std::size_t node) {
    while (parent_[node] != node) node = parent_[node] = parent_[parent_[node]];
    return node;
  }
  void join(const TimedSteps& steps) {
    for (const std::vector<NodeId>& nodes : steps.nodes) {
      for (const NodeId node : nodes) {
        parent_[find(static_cast<std::size_t>(node))] = find(static_cast<std::size_t>(nodes[0]));
      }
    }
  }
  // The time of each set.
  std::map<std::size_t, double> seconds_of(const TimedSteps& steps) {
    std::map<std::size_t, double> sums;
    for (std::size_t s = 0; s < steps.seconds.size(); ++s) {
      if (steps.owners[s] == kNoNode) continue;
      sums[find(static_cast<std::size_t>(steps.owners[s]))] += steps.seconds[s];
    }
    return sums;
  }

 private:
  std::vector<std::size_t> parent_;
};

// The best rates that any step has reached. What takes longer than its work at rates somewhat above
// these may be computed faster.
struct Rates {
  static constexpr double kAbove = 1.4;
  double flops = 0.0, bytes = 0.0;  // a second

  static double bytes_of(const Cost& cost) {
    return static_cast<double>(cost.bytes_read + cost.bytes_written);
  }
  explicit Rates(const TimedSteps& steps) {
    for (std::size_t s = 0; s < steps.seconds.size(); ++s) {
      if (!(steps.seconds[s] > 0.0)) continue;
      flops = std::max(flops, static_cast<double>(steps.work[s].flops) / steps.seconds[s]);
      bytes = std::max(bytes, bytes_of(steps.work[s]) / steps.seconds[s]);
    }
  }
  [[nodiscard]] double seconds_for(const Cost& cost) const {
    double seconds = 0.0;
    if (flops > 0.0) seconds = static_cast<double>(cost.flops) / flops;
    if (bytes > 0.0) seconds = std::max(seconds, bytes_of(cost) / bytes);
    return seconds / kAbove;
  }
};

// Problems are handed over to another provider, the steps that are new are timed in place, and each
// problem then stays or changes by its own times, with those of the reorders it needs.
class Search {
 public:
  Search(const Graph& graph, const PlanOptions& options, Device& device, const SearchLimits& limits)
      : graph_(graph), options_(options), device_(device), limits_(limits) {
    for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
      problems_.push_back(problem_of(graph, static_cast<NodeId>(id)));
      problems_of_kind_[graph.nodes()[id].kind].insert(problems_.back());
    }
  }

  Preference run() {
    for (const Backend* backend : options_.providers) {
      if (backend->measures && backend != options_.providers[0]) continue;
      Preference single(graph_.nodes().size(), Choice{backend});
      TimedSteps steps = timed(single);
      if (best_.empty() || steps.sum() < best_steps_.sum()) {
        best_ = std::move(single);
        best_steps_ = std::move(steps);
      }
    }
    const Preference fastest_single = best_;
    for (const Backend* backend : options_.providers) {
      for (const bool without : {false, true}) {
        const Choice choice{backend, without};
        if (choice == fastest_single[0]) continue;
        if (backend->measures) {
          ask_for_promising(choice);
        } else {
          for (const auto& [kind, problems] : problems_of_kind_) hand_over(problems, choice);
        }
      }
    }
    return best_ == fastest_single || wins(best_, fastest_single) ? best_ : fastest_single;
  }

 private:
  using Problems = std::set<std::string>;

  [[nodiscard]] bool late() const { return seconds_since(begin_) > limits_.seconds; }

  [[nodiscard]] Plan plan_with(const Preference& preference) const {
    PlanOptions options = options_;
    set_preference(options, preference);
    return make_plan(graph_, options);
  }

  // Steps not seen before are measured.
  TimedSteps timed(const Preference& preference) {
    Plan plan = plan_with(preference);
    TimedSteps steps;
    steps.owners = owners_of(plan);
    std::vector<std::string> keys;
    std::vector<std::size_t> unknown;
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      steps.nodes.push_back(plan.steps[s].nodes);
      steps.work.push_back(plan.steps[s].boundary);
      keys.push_back(step_key(plan, plan.steps[s]));
      // A place for the time marks the key as asked for.
      if (seconds_.try_emplace(keys[s], 0.0).second) unknown.push_back(s);
    }
    if (!unknown.empty()) {
      Session session(device_);
      const Session::PlanId id = session.add(std::move(plan));
      session.prepare();
      fill_for_timing(session, id);
      session.run(id);
      session.device().synchronize();
      for (const std::size_t s : unknown) seconds_[keys[s]] = time_step(session, id, s);
    }
    for (const std::string& key : keys) steps.seconds.push_back(seconds_.at(key));
    return steps;
  }

  double whole(const Preference& preference) {
    Session session(device_);
    const Session::PlanId id = session.add(plan_with(preference));
    session.prepare();
    fill_for_timing(session, id);
    return time_whole(session, id);
  }

  // The sum of single steps is only an estimate: a mixture must win as a whole, in turns, because
  // the speed of machines drifts.
  bool wins(const Preference& mixture, const Preference& single) {
    double mixed = whole(mixture), alone = whole(single);
    for (int turn = 0; turn < 2 && !late(); ++turn) {
      mixed = std::min(mixed, whole(mixture));
      alone = std::min(alone, whole(single));
    }
    return mixed < alone * (1.0 - kLeastGain / 3);
  }

  // Without passes a plan is another one only where there is a row of a pass.
  [[nodiscard]] bool has_row(const Choice& choice, std::size_t id) const {
    const auto rows = choice.backend->rows();
    return std::any_of(rows.begin(), rows.end(), [&](const KernelRow& row) {
      if (choice.without_passes && pass_of(row.name).empty()) return false;
      return !row.match(graph_, static_cast<NodeId>(id)).empty();
    });
  }

  // Hands over the problems on which most can be gained, a few at a time.
  void ask_for_promising(const Choice& choice) {
    const std::vector<std::string> promising = promising_for(choice);
    for (std::size_t first = 0; first < promising.size() && !late(); first += kAtOnce) {
      const std::size_t end = std::min(first + kAtOnce, promising.size());
      if (limits_.progress) {
        const double done = static_cast<double>(first) / static_cast<double>(promising.size());
        limits_.progress(std::max(done, seconds_since(begin_) / limits_.seconds));
      }
      const auto at = [&](std::size_t i) {
        return promising.begin() + static_cast<std::ptrdiff_t>(i);
      };
      hand_over(Problems(at(first), at(end)), choice);
    }
    if (limits_.progress) limits_.progress(1.0);
  }

  // The time of the steps in which a problem takes part now, less that of their ops at the best
  // rates: ops of one step may be apart afterwards.
  [[nodiscard]] std::vector<std::string> promising_for(const Choice& choice) {
    const Rates rates(best_steps_);
    std::map<std::string, double> gains;
    double whole = 0.0;
    for (std::size_t s = 0; s < best_steps_.seconds.size(); ++s) {
      whole += best_steps_.seconds[s];
      double gain = best_steps_.seconds[s];
      Problems problems;
      for (const NodeId id : best_steps_.nodes[s]) {
        gain -= rates.seconds_for(work_of(graph_.node(id)));
        if (has_row(choice, static_cast<std::size_t>(id))) {
          problems.insert(problems_[static_cast<std::size_t>(id)]);
        }
      }
      if (gain < kLeastGain * best_steps_.seconds[s]) continue;
      for (const std::string& problem : problems) gains[problem] += gain;
    }
    std::vector<std::pair<double, std::string>> worth;
    for (const auto& [problem, gain] : gains) {
      const bool pays =
          limits_.runs == 0 || gain * static_cast<double>(limits_.runs) > kSecondsEach;
      if (gain > kLeastShare * whole && pays) worth.emplace_back(gain, problem);
    }
    std::sort(worth.rbegin(), worth.rend());
    std::vector<std::string> promising;
    for (auto& [gain, problem] : worth) promising.push_back(std::move(problem));
    return promising;
  }

  [[nodiscard]] Cost work_of(const Node& node) const {
    std::vector<TensorSpec> inputs;
    for (const ValueId input : node.inputs) inputs.push_back(graph_.value(input).spec);
    return cost_of(node.kind, node.attributes, inputs);
  }

  void hand_over(const Problems& problems, const Choice& choice) {
    Preference candidate = best_;
    bool any = false;
    for (std::size_t id = 0; id < candidate.size(); ++id) {
      if (!problems.contains(problems_[id])) continue;
      any = any || has_row(choice, id);
      candidate[id] = choice;
    }
    if (!any) return;
    TimedSteps steps = timed(candidate);
    // Where both plans cut the graph alike, sets are single steps; else they are what both cover.
    NodeSets sets(graph_.nodes().size());
    sets.join(best_steps_);
    sets.join(steps);
    const auto old_seconds = sets.seconds_of(best_steps_), new_seconds = sets.seconds_of(steps);

    // Nodes with the same problem change together.
    struct Times {
      double before = 0.0, after = 0.0;
    };
    std::map<std::string, Times> times;
    std::set<std::pair<std::string, std::size_t>> counted;
    for (std::size_t id = 0; id < candidate.size(); ++id) {
      const std::size_t set = sets.find(id);
      if (!problems.contains(problems_[id]) || !old_seconds.contains(set)) continue;
      if (!counted.emplace(problems_[id], set).second) continue;
      times[problems_[id]].before += old_seconds.at(set);
      // A concatenation that needs no copy any more has no step of its own, and takes no time.
      const auto now = new_seconds.find(set);
      if (now != new_seconds.end()) times[problems_[id]].after += now->second;
    }
    bool changed = false;
    for (std::size_t id = 0; id < candidate.size(); ++id) {
      if (!problems.contains(problems_[id])) continue;
      const Times& time = times[problems_[id]];
      if (!(time.after < time.before * (1.0 - kLeastGain))) continue;
      best_[id] = choice;
      changed = true;
    }
    if (changed) best_steps_ = best_ == candidate ? std::move(steps) : timed(best_);
  }

  const Graph& graph_;
  const PlanOptions& options_;
  Device& device_;
  const SearchLimits& limits_;
  const Clock::time_point begin_ = Clock::now();
  std::vector<std::string> problems_;  // of each node
  std::map<OpKind, Problems> problems_of_kind_;
  std::map<std::string, double> seconds_;  // of steps measured so far
  Preference best_;
  TimedSteps best_steps_;
};

}  // namespace

void set_preference(PlanOptions& options, const Preference& preference) {
  options.preferred.clear();
  options.without_passes.clear();
  for (const Choice& choice : preference) {
    options.preferred.push_back(choice.backend);
    options.without_passes.push_back(choice.without_passes);
  }
}

std::string problem_of(const Graph& graph, NodeId id) { return make_problem(graph, {id}).text(); }

Preference search(const Graph& graph, const PlanOptions& options, Device& device,
                  const SearchLimits& limits) {
  return Search(graph, options, device, limits).run();
}

}  // namespace ridgeline
