#include "plan/auto.h"

#include <algorithm>
#include <map>

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

constexpr int kRepeats = 5;

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

class Search {
 public:
  Search(const Graph& graph, const PlanOptions& options, Device& device)
      : graph_(graph), options_(options), device_(device) {}

  Preference run() {
    Preference best;
    double best_seconds = 0.0;
    for (const Backend* backend : options_.providers) {
      Preference single(graph_.nodes().size(), backend);
      const double seconds = estimate(single);
      if (best.empty() || seconds < best_seconds) {
        best = std::move(single);
        best_seconds = seconds;
      }
    }
    const Preference fastest_single = best;
    improve(best, best_seconds);
    // The sum of single steps is only an estimate: the mixture must win as a whole.
    return best == fastest_single || whole(best) < whole(fastest_single) ? best : fastest_single;
  }

 private:
  [[nodiscard]] Plan plan_with(const Preference& preference) const {
    PlanOptions options = options_;
    options.preferred = preference;
    return make_plan(graph_, options);
  }

  // The sum of the plan's step times; steps not seen before are measured.
  double estimate(const Preference& preference) {
    Plan plan = plan_with(preference);
    std::vector<std::string> keys;
    bool known = true;
    for (const Step& step : plan.steps) {
      keys.push_back(step_key(plan, step));
      known = known && seconds_.contains(keys.back());
    }
    if (!known) measure(std::move(plan), keys);
    double sum = 0.0;
    for (const std::string& key : keys) sum += seconds_.at(key);
    return sum;
  }

  PlanTiming measure(Plan plan, const std::vector<std::string>& keys) {
    Session session(device_);
    const Session::PlanId id = session.add(std::move(plan));
    session.prepare();
    fill_for_timing(session, id);
    PlanTiming timing = time_plan(session, id, kRepeats);
    for (std::size_t s = 0; s < keys.size(); ++s) {
      const auto [entry, is_new] = seconds_.try_emplace(keys[s], timing.step_seconds[s]);
      if (!is_new) entry->second = std::min(entry->second, timing.step_seconds[s]);
    }
    return timing;
  }

  double whole(const Preference& preference) {
    return measure(plan_with(preference), {}).total_seconds;
  }

  // Tries the other providers for one problem after the other, all its nodes at once, until nothing
  // gains any more.
  void improve(Preference& best, double& best_seconds) {
    std::map<std::string, std::vector<std::size_t>> problems;
    for (std::size_t id = 0; id < graph_.nodes().size(); ++id) {
      problems[problem_of(graph_, static_cast<NodeId>(id))].push_back(id);
    }
    for (bool gained = true; gained;) {
      gained = false;
      for (const auto& [problem, nodes] : problems) {
        for (const Backend* backend : options_.providers) {
          if (best[nodes[0]] == backend) continue;
          Preference candidate = best;
          for (const std::size_t node : nodes) candidate[node] = backend;
          const double seconds = estimate(candidate);
          if (seconds < best_seconds * 0.995) {
            best = std::move(candidate);
            best_seconds = seconds;
            gained = true;
          }
        }
      }
    }
  }

  const Graph& graph_;
  const PlanOptions& options_;
  Device& device_;
  std::map<std::string, double> seconds_;
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
