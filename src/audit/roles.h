#pragma once

// What a column of results can mean.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "audit/units.h"

namespace ridgeline::audit {

enum class Role {
  none,
  // What was done: these tell configurations apart.
  run,
  model,
  batch,
  image,
  device,
  backend,
  precision,
  dataset,
  classes,
  frozen,
  seed,
  condition,  // normalisation, optimizer, options: what must be equal in a comparison
  operation,  // the row is a part of a step: an op, a layer, a phase
  phase,      // "warmup", "measured"
  kind,       // "training", "inference"
  // Where in a series.
  epoch,
  iteration,
  timestamp,
  // How much.
  iterations,           // claimed
  recorded_iterations,  // really there
  epochs,
  batches_per_epoch,
  samples,       // of an epoch, or of the training set
  test_samples,  // of the test set
  data_samples,  // that the named data has
  repeats,       // measurements behind the number
  readings,      // of the sensor behind the utilisation
  // Measured.
  batch_time,
  image_time,
  epoch_time,
  total_time,
  time,  // of what the row is
  kernel_time,
  late_time,  // kernels beyond the end of the step that launched them
  deviation,
  throughput,
  accuracy,
  final_accuracy,
  best_accuracy,
  train_accuracy,
  majority,
  loss,
  utilisation,
  memory,
  parameter_memory,
  power,
  // Reckoned.
  parameters,
  flops,
  macs,
  flop_rate,
  peak_rate,
  bandwidth,
  intensity,
  efficiency,
  speedup,
  speedup_low,  // the ends of its interval
  speedup_high,
};

struct RoleInfo {
  Role role;
  std::string_view name;  // as --map takes it: "batch-time"
  Dimension dimension;    // of its numbers; none: counts or words
  bool words;             // its cells are names, not numbers
  bool key;               // tells configurations apart
  std::string_view meaning;
};
[[nodiscard]] std::span<const RoleInfo> all_roles();
[[nodiscard]] const RoleInfo& info_of(Role role);
// Throws bad_input with the nearest name.
[[nodiscard]] Role role_named(std::string_view name);

// What the title says by itself; Role::none where it says nothing. Generic times ("seconds") are
// Role::time: what else the table has decides.
[[nodiscard]] Role role_of_title(const Title& title);

}  // namespace ridgeline::audit
