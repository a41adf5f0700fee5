#pragma once

// Watches a few iterations and tells where their time goes: what `ridgeline profile` does.

#include <optional>
#include <string>

#include "analysis/roofline/roofs.h"
#include "lab/bench_matrix.h"
#include "lab/listener.h"
#include "lab/store_options.h"
#include "measure/profile/collect.h"
#include "measure/profile/difference.h"
#include "measure/telemetry/telemetry.h"

namespace ridgeline {

struct ProfileRequest {
  BenchAxes axes;  // of one value each
  BenchWork work;
  StoreOptions store;
  std::int64_t steps = 5;  // iterations that are watched
  std::string against;     // a stored run to compare with; empty: none
  bool counters = false, no_roof = false;
  double telemetry_hz = kTelemetryHz;
};

struct ProfileReport {
  Collected collected;
  Roofs roofs;                            // empty: not known
  std::optional<DifferenceSide> against;  // the stored run
  std::string run, store;                 // uuid and file; empty: not stored
  std::string store_trouble;              // why it was not stored whole; empty: it was
};

// Throws bad_input for what cannot be profiled, and what ends the watching.
[[nodiscard]] ProfileReport run_profile(ProfileRequest request, CallListener& listener);

}  // namespace ridgeline
