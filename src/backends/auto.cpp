#include "backends/auto.h"

#include <algorithm>

#include "backends/mpi/backend.h"
#include "backends/nccl/backend.h"
#include "backends/registry.h"
#include "backends/search.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/suggest.h"
#include "base/text.h"
#include "build_info.h"
#include "plan/choice_cache.h"

namespace ridgeline {
namespace {

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
    preference = search(graph, options, device, request.search);
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
