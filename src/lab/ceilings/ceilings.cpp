#include "lab/ceilings/ceilings.h"

#include <algorithm>

#include "base/error.h"
#include "lab/stats/summary.h"

namespace ridgeline {
std::vector<Ceiling> measure_ceilings(const std::string& device, const CeilingProgress& progress,
                                      const CeilingEffort& effort) {
  if (effort.repeats < 5) bad_input("{} repeats: a ceiling needs at least 5", effort.repeats);
  const std::unique_ptr<Device> opened = make_device(device);
  if (opened->kind() == "cpu") return ceilings::measure_cpu(progress, effort);
  return ceilings::measure_cuda(*opened, progress, effort);
}

std::vector<Ceiling> known_or_measured(Store& store, const std::string& environment,
                                       const std::string& device, const CeilingProgress& progress) {
  const std::string name = device == "cuda" ? "cuda:0" : device;
  std::vector<Ceiling> known = store.ceilings(environment);
  std::erase_if(known, [&](const Ceiling& ceiling) { return ceiling.device != name; });
  if (!known.empty()) return known;
  std::vector<Ceiling> measured = measure_ceilings(name, progress);
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
