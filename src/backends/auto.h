#pragma once

// From a backend's name to a Plan. `auto` chooses among the providers step by step, by measuring;
// its choices are cached on disk under a key of graph, device, threads and library versions.

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "backends/registry.h"
#include "backends/search.h"
#include "devices/device.h"
#include "plan/choice_cache.h"
#include "plan/plan.h"

namespace ridgeline {

struct PlanRequest {
  std::string backend = std::string(default_backend("cpu"));  // a name, or kAuto
  std::vector<std::string> disabled_passes;
  bool deterministic = false;  // only kernels with that trait
  // As in PlanOptions: for plans that update no weights, in sessions that rarely do.
  bool constant_weights = false;
  bool measure = true;       // as there; `auto` measures whatever this says
  SearchLimits search = {};  // of `auto`
  // Where `auto` keeps its choices; empty: nowhere.
  std::filesystem::path cache = {};
  // Choices that come before those of the cache, and to which those made are added; null: none.
  std::shared_ptr<PlanChoices> choices = {};
  // Choices by the graph's ops alone, whatever their shapes: a smaller last batch takes what was
  // chosen for the full one instead of measuring again; null: nothing is shared.
  std::shared_ptr<PlanChoices> by_structure = {};
};

// For plans that nothing may run for: our own kernels in the place of `auto`, whose plans need
// about as much memory.
[[nodiscard]] PlanRequest without_search(PlanRequest request, const Device& device);

// Throws bad_input for an unknown backend or pass, or one that does not fit the device. `auto` runs
// kernels on the device to time them.
[[nodiscard]] Plan plan_for(Graph graph, const PlanRequest& request, Device& device);

}  // namespace ridgeline
