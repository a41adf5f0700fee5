#pragma once

// What is known of runs: how long an iteration took, and what it demanded of its device.

#include <filesystem>
#include <string>
#include <vector>

#include "predict/demand.h"
#include "store/store.h"

namespace ridgeline::predict {

struct Observation {
  std::string device;  // the target's name
  Family family = Family::cpu;
  std::string backend;  // "native", "auto", "torch-cuda"
  std::string model;
  std::string network;  // all that a step's kernels depend on but the batch: model, images, kind
  std::string precision;
  std::int64_t batch = 0;
  double seconds = 0.0;                 // of an iteration
  Demand demand;                        // at the device's roofs
  std::map<Kind, double> kind_seconds;  // measured step by step; empty: the whole alone
  std::string source;                   // "run 12", "a.csv, line 3"
  RunId run = 0;                        // of the store; 0: it is from elsewhere
  bool disturbed = false;  // other programs ran meanwhile: the finding "noisy neighbour"
  bool part = false;       // time and demand are those of one op alone
};

// A step on a device, without time and backend.
[[nodiscard]] Observation observation_of(const Work& work, const Target& target,
                                         std::span<const StepTime> steps);

// Complete runs of a store that measured iterations on a device whose roofs are known. What cannot
// be used is told in `left_out`, one sentence each.
[[nodiscard]] std::vector<Observation> stored_observations(const Store& store,
                                                           const KnownHardware& known,
                                                           std::vector<std::string>& left_out);

// A CSV file with the columns device, backend, kind, model, image, classes, batch, precision, part,
// without, ms and source: iterations that were measured elsewhere, without a pass of the plan where
// one is named. Devices are found as --on finds them. Throws
// bad_input with file and line.
[[nodiscard]] std::vector<Observation> read_observations(const std::filesystem::path& path,
                                                         Targets& targets);

}  // namespace ridgeline::predict
