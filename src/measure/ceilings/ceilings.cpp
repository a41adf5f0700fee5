#include "measure/ceilings/ceilings.h"

#include <algorithm>

#include "analysis/stats/summary.h"
#include "base/error.h"
#include "devices/device.h"

namespace ridgeline {
namespace {

constexpr int kAttempts = 8;
// Cores share caches and power, so that two may do a little less than twice as much, but never less
// than one alone.
constexpr double kLeastGain = 0.95;

bool same_subject(const Ceiling& a, const Ceiling& b) {
  return a.kind == b.kind && a.subject == b.subject && a.path == b.path;
}

}  // namespace

std::vector<Ceiling> measure_ceilings(const std::string& device, const CeilingProgress& progress,
                                      const CeilingEffort& effort) {
  if (effort.repeats < 5) bad_input("{} repeats: a ceiling needs at least 5", effort.repeats);
  const std::unique_ptr<Device> opened = make_device(device);
  if (opened->kind() == "cpu") return ceilings::measure_cpu(progress, effort);
  if (opened->kind() == "opencl") return ceilings::measure_opencl(*opened, progress, effort);
  return ceilings::measure_cuda(*opened, progress, effort);
}

std::vector<Ceiling> disturbed(std::span<const Ceiling> ceilings) {
  std::vector<Ceiling> found;
  for (const Ceiling& all : ceilings) {
    if (all.scope != "all cores" || all.kind == "latency") continue;
    const auto one = std::find_if(ceilings.begin(), ceilings.end(), [&](const Ceiling& other) {
      return other.scope == "one core" && same_subject(other, all);
    });
    if (one != ceilings.end() && all.high < kLeastGain * one->high) found.push_back(all);
  }
  return found;
}

void keep_better(std::vector<Ceiling>& kept, std::span<const Ceiling> again) {
  for (const Ceiling& other : again) {
    const auto found = std::find_if(kept.begin(), kept.end(), [&](const Ceiling& ceiling) {
      return same_subject(ceiling, other) && ceiling.scope == other.scope;
    });
    if (found == kept.end()) {
      kept.push_back(other);
    } else if (other.kind == "latency" ? other.low < found->low : other.high > found->high) {
      *found = other;
    }
  }
}

std::vector<Ceiling> undisturbed_ceilings(const std::string& device,
                                          const CeilingProgress& progress,
                                          std::vector<Ceiling> known) {
  if (known.empty()) known = measure_ceilings(device, progress);
  for (Ceiling& ceiling : known) ceiling.lower_bound = false;
  for (int attempt = 1; attempt < kAttempts; ++attempt) {
    const std::vector<Ceiling> again = disturbed(known);
    if (again.empty()) return known;
    keep_better(known, measure_ceilings(device, progress, {.only = again}));
  }
  for (const Ceiling& low : disturbed(known)) {
    for (Ceiling& ceiling : known) {
      if (same_subject(ceiling, low) && ceiling.scope == low.scope) ceiling.lower_bound = true;
    }
  }
  return known;
}

std::vector<Ceiling> stored_ceilings(const Store& store, const std::string& environment,
                                     const std::string& device) {
  std::vector<Ceiling> known = store.ceilings(environment);
  std::erase_if(known, [&](const Ceiling& ceiling) { return ceiling.device != device; });
  return known;
}

std::vector<Ceiling> known_or_measured(Store& store, const std::string& environment,
                                       const std::string& device, const CeilingProgress& progress) {
  const std::string name = device_name(device);
  const std::vector<Ceiling> known = stored_ceilings(store, environment, name);
  if (!known.empty()) return known;
  const std::vector<Ceiling> measured = undisturbed_ceilings(name, progress);
  store.replace_ceilings(environment, name, measured);
  return measured;
}

namespace ceilings {

Ceiling ceiling_named(std::string device, std::string kind, std::string subject, std::string path,
                      std::string scope, std::string unit) {
  Ceiling ceiling;
  ceiling.device = std::move(device);
  ceiling.kind = std::move(kind);
  ceiling.subject = std::move(subject);
  ceiling.path = std::move(path);
  ceiling.scope = std::move(scope);
  ceiling.unit = std::move(unit);
  return ceiling;
}

void set_values(Ceiling& ceiling, std::span<const double> repeats) {
  ceiling.value = median_interval(repeats).median;
  const auto [low, high] = std::minmax_element(repeats.begin(), repeats.end());
  ceiling.low = *low;
  ceiling.high = *high;
}

}  // namespace ceilings
}  // namespace ridgeline
