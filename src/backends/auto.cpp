#include "backends/auto.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "backends/mpi/backend.h"
#include "backends/nccl/backend.h"
#include "backends/registry.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/suggest.h"
#include "base/text.h"
#include "build_info.h"
#include "plan/choice_cache.h"
#include "plan/measure.h"
#include "plan/session.h"

namespace ridgeline {
namespace {

// A problem changes hands only for a gain of more than this share of its time: less is noise.
constexpr double kLeastGain = 0.03;

// For a node the provider to try first, and whether without its rows of passes.
struct Choice {
  const Backend* backend = nullptr;
  bool without_passes = false;

  friend bool operator==(const Choice&, const Choice&) = default;
};
using Preference = std::vector<Choice>;

void set_preference(PlanOptions& options, const Preference& preference) {
  options.preferred.clear();
  options.without_passes.clear();
  for (const Choice& choice : preference) {
    options.preferred.push_back(choice.backend);
    options.without_passes.push_back(choice.without_passes);
  }
}

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

// What the search keeps of a plan: for each step the nodes it covers, its owner and its time.
struct TimedSteps {
  std::vector<std::vector<NodeId>> nodes;
  std::vector<NodeId> owners;
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
    for (const Backend* backend : options_.providers) {
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
        for (const OpKind kind : kinds_) hand_over(kind, choice);
      }
    }
    return best_ == fastest_single || wins(best_, fastest_single) ? best_ : fastest_single;
  }

 private:
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
    for (int turn = 0; turn < 2; ++turn) {
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

  void hand_over(OpKind kind, const Choice& choice) {
    Preference candidate = best_;
    bool any = false;
    for (std::size_t id = 0; id < candidate.size(); ++id) {
      if (graph_.nodes()[id].kind != kind) continue;
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
      if (graph_.nodes()[id].kind != kind || !old_seconds.contains(set)) continue;
      if (!counted.emplace(problems_[id], set).second) continue;
      times[problems_[id]].before += old_seconds.at(set);
      // A concatenation that needs no copy any more has no step of its own, and takes no time.
      const auto now = new_seconds.find(set);
      if (now != new_seconds.end()) times[problems_[id]].after += now->second;
    }
    bool changed = false;
    for (std::size_t id = 0; id < candidate.size(); ++id) {
      if (graph_.nodes()[id].kind != kind) continue;
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
  std::vector<std::string> problems_;  // of each node
  std::set<OpKind> kinds_;
  std::map<std::string, double> seconds_;  // of steps measured so far
  Preference best_;
  TimedSteps best_steps_;
};

std::string cache_key(const Graph& graph, const PlanOptions& options, const Device& device) {
  std::string key = fmt::format("{} {} threads kernels {}", device.description(), thread_count(),
                                build_info::kernels);
  for (const Backend* backend : options.providers) {
    key += fmt::format(" {}={}", backend->name, backend->version());
  }
  for (const std::string& pass : options.disabled_passes) key += " no-" + pass;
  if (options.deterministic) key += " deterministic";
  if (options.constant_weights) key += " constant weights";
  std::string problems;
  for (std::size_t id = 0; id < graph.nodes().size(); ++id) {
    problems += problem_of(graph, static_cast<NodeId>(id)) + '\n';
  }
  return key + fmt::format(" {} ops {:016x}", graph.nodes().size(), hash_of(problems));
}

// How choices are written down: "native", "native without passes".
constexpr std::string_view kWithout = " without passes";

std::string name_of(const Choice& choice) {
  return std::string(choice.backend->name) + std::string(choice.without_passes ? kWithout : "");
}

Choice by_name(const std::vector<const Backend*>& backends, std::string_view name) {
  const bool without = name.ends_with(kWithout);
  if (without) name.remove_suffix(kWithout.size());
  for (const Backend* backend : backends) {
    if (backend->name == name) return {backend, without};
  }
  return {};
}

// The ops and their layers, without shapes.
std::string structure_of(const Graph& graph) {
  std::string text;
  for (const Node& node : graph.nodes()) {
    text += fmt::format("{} {}\n", name_of(node.kind), node.layer);
  }
  return text;
}

Preference choose(const Graph& graph, const PlanOptions& options, const PlanRequest& request,
                  Device& device) {
  const std::string key = cache_key(graph, options, device);
  std::vector<std::string> names;
  if (request.choices && request.choices->contains(key)) names = request.choices->at(key);
  if (names.empty()) names = load_choice(request.cache, key);
  const std::string structure = structure_of(graph);
  const bool similar = request.by_structure && request.by_structure->contains(structure);
  // Borrowed for this call alone: it was not measured for these shapes.
  if (names.size() != graph.nodes().size() && similar) names = request.by_structure->at(structure);
  Preference preference;
  if (names.size() == graph.nodes().size()) {
    for (const std::string& name : names) preference.push_back(by_name(options.providers, name));
  } else {
    preference = Search(graph, options, device).run();
    names.clear();
    for (const Choice& choice : preference) names.push_back(name_of(choice));
    store_choice(request.cache, key, names);
  }
  if (request.choices) (*request.choices)[key] = names;
  if (request.by_structure) request.by_structure->try_emplace(structure, names);
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

PlanRequest without_search(PlanRequest request, const Device& device) {
  if (request.backend == kAuto) request.backend = own_backend(device.kind());
  return request;
}

namespace {

bool joins_ranks(const Graph& graph) {
  const auto nodes = graph.nodes();
  return std::any_of(nodes.begin(), nodes.end(), [](const Node& node) {
    return node.kind == OpKind::all_reduce || node.kind == OpKind::merge_statistics;
  });
}

}  // namespace

Plan plan_for(Graph graph, const PlanRequest& request, Device& device) {
  check_passes(request.disabled_passes);
  PlanOptions options;
  options.disabled_passes = request.disabled_passes;
  options.deterministic = request.deterministic;
  options.constant_weights = request.constant_weights;
  options.measure = request.measure;
  if (request.backend != kAuto) {
    options.providers = providers_of(request.backend);
    if (joins_ranks(graph)) {
      options.providers.push_back(device.kind() == "cuda" ? &nccl_backend : &mpi_backend);
    }
    if (options.providers[0]->device != device.kind()) {
      bad_input("backend '{}' computes on {}, not on {}", request.backend,
                options.providers[0]->device, device.name());
    }
    return make_plan(std::move(graph), options);
  }
  for (const Backend* backend : all_backends()) {
    // The device first: asking for OpenCL starts its drivers.
    const bool fits = backend->device == device.kind() && !backend->plain;
    if (fits && backend->unavailable().empty()) options.providers.push_back(backend);
  }
  set_preference(options, choose(graph, options, request, device));
  return make_plan(std::move(graph), options);
}

}  // namespace ridgeline
