#pragma once

// A run with every kind of row, for the tests of the store.

#include <string>
#include <vector>

#include "store/store.h"

namespace ridgeline::testing {

inline RunRecord example_run() {
  RunRecord run;
  run.environment = "feed";
  run.command = "bench";
  run.arguments = "ridgeline bench mlp";
  run.group = "g1";
  run.label = "a, \"quoted\" label";
  run.seed = 7;
  run.work.model = "mlp";
  run.work.settings = {{"activation", "relu"}, {"depth", "1"}, {"hidden", "64,32"}};
  run.work.image = {1, 28, 28};
  run.work.classes = 10;
  run.work.freeze = {"fc1.*", "fc2.*"};
  run.work.batch = 32;
  run.work.optimizer = "sgd";
  run.work.learning_rate = 0.05;
  run.work.momentum = 0.9;
  run.work.data_samples = 64;
  run.work.normalisation = {0.1307, 0.3081};
  run.work.loader = true;
  run.executor.backend = "native";
  run.executor.device = "cpu";
  run.executor.threads = 2;
  run.executor.workers = 1;
  run.executor.deterministic = true;
  run.executor.disabled_passes = {"fusion", "slices"};
  run.numbers = {{"training_flops", 1e9}};
  run.notes = {{"clock", "host"}};
  return run;
}

inline EnvironmentRecord example_environment() {
  return {.key = "feed",
          .label = "desk",
          .host = "box",
          .cpu = "Some CPU",
          .gpus = "",
          .fingerprint = R"({"cpu":{"processors":2,"max_mhz":3000.0}})"};
}

inline NetworkRecord example_network() {
  return {.key = "ne7", .description = R"({"input":[1,28,28],"operations":[]})"};
}

inline std::vector<Sample> example_samples(std::int64_t count, std::int64_t from = 0) {
  std::vector<Sample> samples;
  for (std::int64_t i = from; i < from + count; ++i) {
    Sample sample;
    sample.block = i / 4;
    sample.iteration = i;
    sample.kind = i < 2 ? SampleKind::warmup : SampleKind::measured;
    sample.at_seconds = 0.25 * static_cast<double>(i);
    sample.wall_seconds = 0.002 + 1e-6 * static_cast<double>(i);
    if (i % 2 == 0) sample.device_seconds = 0.001;
    samples.push_back(sample);
  }
  return samples;
}

inline StudyRecord example_study() {
  return {.uuid = "5tudy",
          .name = "backends",
          .scale = "small",
          .environment = example_environment().key,
          .options = "only=main",
          .definition = "name = 'backends'",
          .started = "2026-11-01T10:00:00.000Z",
          .finished = ""};
}
inline std::vector<StudyItemRecord> example_items() {
  StudyItemRecord first, second;
  first.study = second.study = example_study().uuid;
  first.key = "main/mlp";
  first.title = "mlp";
  first.command = "bench mlp";
  first.status = ItemStatus::done;
  first.estimated_seconds = 2.0;
  first.seconds = 2.5;
  second.number = 1;
  second.key = "sweep/mlp/batch=8";
  second.substitute = "synthetic in place of mnist";
  return {first, second};
}

// A finished run with rows in every table, and ceilings of its environment.
inline RunId write_example(Store& store, std::int64_t samples = 12) {
  store.add(example_environment());
  store.add(example_network());
  RunRecord run = example_run();
  run.network = example_network().key;
  const RunId id = store.begin(run);
  store.add(id, example_samples(samples));
  StepTime step;
  step.layer = "fc1";
  step.ops = "dense";
  step.phase = "forward";
  step.provider = "native";
  step.kernel = "native:dense";
  step.seconds = 0.001;
  step.flops = step.work_flops = 1'000'000;
  step.bytes_read = 4000;
  step.bytes_written = 2000;
  step.unit = "fp32";
  step.covers = "forward linear fc1; forward bias fc1";
  store.add(id, std::vector<StepTime>{step, step});
  store.add(id, std::vector<Reading>{{0.1, "cpu", "cpu_mhz", 2000.0},
                                     {0.2, "cpu", "cpu_mhz", 2100.0},
                                     {0.2, "cuda:0", "gpu_power_watts", 70.5}});
  store.add(id, std::vector<MemoryEntry>{{"cpu", "parameter", "planned", 4096}});
  store.add(id, std::vector<Finding>{{"loader-bound", "warning", "80% of the time, waiting"}});
  EpochRecord epoch;
  epoch.epoch = 1;
  epoch.train_loss = 0.5;
  epoch.test_accuracy = 0.9;
  epoch.samples = 64;
  epoch.seconds = 1.5;
  store.add(id, std::vector<EpochRecord>{epoch});
  store.add(id, std::vector<LiveEntry>{{0, "activation", 512}, {1, "activation", 1024}});
  store.add(id, std::vector<TimelineEntry>{{"step", "fc1 dense", "host", 0.0, 0.001, 0}});
  store.finish(id, RunStatus::complete, "", {{"median_seconds", 0.002}}, {{"parity", "n/a"}});
  Ceiling ceiling;
  ceiling.device = "cpu";
  ceiling.kind = "compute";
  ceiling.subject = "fp32";
  ceiling.path = "avx2";
  ceiling.scope = "all cores";
  ceiling.unit = "FLOP/s";
  ceiling.value = 1e11;
  store.replace_ceilings("feed", "cpu", std::vector<Ceiling>{ceiling});
  return id;
}

}  // namespace ridgeline::testing
