#include "plan/auto.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "backends/registry.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/suggest.h"
#include "base/text.h"
#include "plan/choice_cache.h"
#include "plan/measure.h"
#include "plan/session.h"

namespace ridgeline {
namespace {

// A problem changes hands only for a gain of more than this share of its time: less is noise.
constexpr double kLeastGain = 0.03;

// A choice: for each node the provider to try first.
using Preference = std::vector<const Backend*>;

std::string problem_of(const Graph& graph, NodeId id) { return make_problem(graph, {id}).text(); }

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
  void join(const Plan& plan) {
    for (const Step& step : plan.steps) {
      for (const NodeId node : step.nodes) {
        parent_[find(static_cast<std::size_t>(node))] =
            find(static_cast<std::size_t>(step.nodes[0]));
      }
    }
  }

 private:
  std::vector<std::size_t> parent_;
};

// Finds the fastest provider for every problem. All problems of one kind of op are handed over at
// once to another provider, the steps that are new are timed in place, and each problem then stays
// or changes by its own times, with those of the reorders it needs.
class Search {
 public:
  Search(const Graph& graph, const PlanOptions& options, Device& device)
      : graph_(graph), options_(options), device_(device) {
    for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
      problems_.push_back(problem_of(graph, static_cast<NodeId>(id)));
      kinds_.insert(graph.nodes()[id].kind);
    }
  }

  Preference run() {
    Preference best;
    double best_seconds = 0.0;
    for (const Backend* backend : options_.providers) {
      Preference single(graph_.nodes().size(), backend);
      const Plan plan = plan_with(single);
      const std::vector<double> seconds = step_seconds(plan, single);
      const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
      if (best.empty() || sum < best_seconds) {
        best = std::move(single);
        best_seconds = sum;
      }
    }
    const Preference fastest_single = best;
    for (const Backend* backend : options_.providers) {
      if (backend == fastest_single[0]) continue;
      for (const OpKind kind : kinds_) hand_over(best, kind, backend);
    }
    return best == fastest_single || wins(best, fastest_single) ? best : fastest_single;
  }

 private:
  [[nodiscard]] Plan plan_with(const Preference& preference) const {
    PlanOptions options = options_;
    options.preferred = preference;
    return make_plan(graph_, options);
  }

  // Times of the plan's steps; those not seen before are measured.
  std::vector<double> step_seconds(const Plan& plan, const Preference& preference) {
    std::vector<std::string> keys;
    std::vector<std::size_t> unknown;
    std::set<std::string> asked;
    for (std::size_t s = 0; s < plan.steps.size(); ++s) {
      keys.push_back(step_key(plan, plan.steps[s]));
      if (!seconds_.contains(keys[s]) && asked.insert(keys[s]).second) unknown.push_back(s);
    }
    if (!unknown.empty()) {
      Session session(device_);
      const Session::PlanId id = session.add(plan_with(preference));
      session.prepare();
      fill_for_timing(session, id);
      session.run(id);
      for (const std::size_t s : unknown) seconds_[keys[s]] = time_step(session, id, s);
    }
    std::vector<double> seconds;
    for (const std::string& key : keys) seconds.push_back(seconds_.at(key));
    return seconds;
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
    for (int turn = 0; turn < 2; ++turn) {
      mixed = std::min(mixed, whole(mixture));
      alone = std::min(alone, whole(single));
    }
    return mixed < alone * (1.0 - kLeastGain / 3);
  }

  void hand_over(Preference& best, OpKind kind, const Backend* backend) {
    Preference candidate = best;
    for (std::size_t id = 0; id < candidate.size(); ++id) {
      if (graph_.nodes()[id].kind == kind) candidate[id] = backend;
    }
    const Plan before = plan_with(best), after = plan_with(candidate);
    // Where both plans cut the graph alike, sets are single steps; else they are what both cover.
    NodeSets sets(graph_.nodes().size());
    sets.join(before);
    sets.join(after);
    std::map<std::size_t, double> old_seconds, new_seconds;
    add_up(before, step_seconds(before, best), sets, old_seconds);
    add_up(after, step_seconds(after, candidate), sets, new_seconds);

    // Nodes with the same problem change together.
    struct Times {
      double before = 0.0, after = 0.0;
    };
    std::map<std::string, Times> times;
    std::set<std::pair<std::string, std::size_t>> counted;
    for (std::size_t id = 0; id < candidate.size(); ++id) {
      if (graph_.nodes()[id].kind != kind) continue;
      const std::size_t set = sets.find(id);
      if (!counted.emplace(problems_[id], set).second) continue;
      times[problems_[id]].before += old_seconds[set];
      times[problems_[id]].after += new_seconds[set];
    }
    for (std::size_t id = 0; id < candidate.size(); ++id) {
      if (graph_.nodes()[id].kind != kind) continue;
      const Times& time = times[problems_[id]];
      if (time.after < time.before * (1.0 - kLeastGain)) best[id] = backend;
    }
  }

  static void add_up(const Plan& plan, const std::vector<double>& seconds, NodeSets& sets,
                     std::map<std::size_t, double>& sums) {
    const std::vector<NodeId> owners = owners_of(plan);
    for (std::size_t s = 0; s < seconds.size(); ++s) {
      if (owners[s] == kNoNode) continue;
      sums[sets.find(static_cast<std::size_t>(owners[s]))] += seconds[s];
    }
  }

  const Graph& graph_;
  const PlanOptions& options_;
  Device& device_;
  std::vector<std::string> problems_;  // of each node
  std::set<OpKind> kinds_;
  std::map<std::string, double> seconds_;  // of steps measured so far
};

std::string cache_key(const Graph& graph, const PlanOptions& options, const Device& device) {
  std::string key = fmt::format("{} {} threads", device.description(), thread_count());
  for (const Backend* backend : options.providers) {
    key += fmt::format(" {}={}", backend->name, backend->version());
  }
  for (const std::string& pass : options.disabled_passes) key += " no-" + pass;
  std::string problems;
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    problems += problem_of(graph, static_cast<NodeId>(id)) + '\n';
  }
  return key + fmt::format(" {} ops {:016x}", graph.nodes().size(), hash_of(problems));
}

const Backend* by_name(const std::vector<const Backend*>& backends, const std::string& name) {
  for (const Backend* backend : backends) {
    if (backend->name == name) return backend;
  }
  return nullptr;
}

Preference choose(const Graph& graph, const PlanOptions& options, const PlanRequest& request,
                  Device& device) {
  const std::string key = cache_key(graph, options, device);
  std::vector<std::string> names;
  if (request.choices && request.choices->contains(key)) names = request.choices->at(key);
  if (names.empty()) names = load_choice(request.cache, key);
  Preference preference;
  if (names.size() == graph.nodes().size()) {
    for (const std::string& name : names) preference.push_back(by_name(options.providers, name));
  } else {
    preference = Search(graph, options, device).run();
    names.clear();
    for (const Backend* backend : preference) names.emplace_back(backend->name);
    store_choice(request.cache, key, names);
  }
  if (request.choices) (*request.choices)[key] = names;
  return preference;
}

void check_passes(const std::vector<std::string>& passes) {
  std::vector<std::string_view> known;
  for (const PassInfo& pass : kPasses) known.push_back(pass.name);
  for (const std::string& pass : passes) {
    if (std::find(known.begin(), known.end(), pass) == known.end()) {
      bad_input("unknown pass '{}'{}; known: {}", pass, did_you_mean(pass, known),
                joined(known, ", "));
    }
  }
}

}  // namespace

Plan plan_for(Graph graph, const PlanRequest& request, Device& device) {
  check_passes(request.disabled_passes);
  PlanOptions options{.providers = {}, .preferred = {}, .disabled_passes = request.disabled_passes};
  if (request.backend != "auto") {
    options.providers = providers_of(request.backend);
    if (options.providers[0]->device != device.kind()) {
      bad_input("backend '{}' computes on {}, not on {}", request.backend,
                options.providers[0]->device, device.name());
    }
    return make_plan(std::move(graph), options);
  }
  for (const Backend* backend : all_backends()) {
    const bool usable = backend->device == device.kind() && backend->unavailable().empty();
    if (usable && backend != &reference_backend) options.providers.push_back(backend);
  }
  options.preferred = choose(graph, options, request, device);
  return make_plan(std::move(graph), options);
}

}  // namespace ridgeline
