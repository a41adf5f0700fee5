#include "support/report_store.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>

#include "base/error.h"
#include "inspect/network_description.h"
#include "store/identity_fields.h"
#include "study/study.h"

namespace ridgeline::testing {
namespace {

bool on_gpu(const ReportRun& run) { return run.device != "cpu"; }
bool is_peer(const ReportRun& run) { return run.backend.starts_with("torch"); }

std::string study_of(const std::string& environment) { return "trial-on-" + environment; }

std::string item_of(const ReportRun& run, const std::string& what) {
  return fmt::format("{}/{}/{}/{}", run.part, run.model, run.backend, what);
}

void put_item(Store& store, const ReportRun& run, const std::string& key,
              const std::string& substitute) {
  StudyItemRecord item;
  item.study = study_of(run.environment);
  item.number = static_cast<std::int64_t>(store.study_items(item.study).size());
  item.key = key;
  item.title = key;
  item.command = "bench " + run.model;
  item.status = ItemStatus::done;
  item.substitute = substitute;
  item.estimated_seconds = 2.0;
  item.seconds = 2.5;
  store.put(std::vector<StudyItemRecord>{item});
}

const ModelInfo* model_of(const std::string& name) {
  const auto models = all_models();
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&](const ModelInfo& model) { return model.name == name; });
  return found == models.end() ? nullptr : &*found;
}

// Nothing for what is no network of this program.
std::optional<NetworkRecord> network_of(const Work& work) {
  if (model_of(work.model) == nullptr) return std::nullopt;
  ModelConfig config = default_config(work.model);
  config.channels = work.image.channels;
  config.height = work.image.height;
  config.width = work.image.width;
  config.classes = work.classes;
  config.options = work.settings;
  try {
    check_config(config);
    return describe_network(config);
  } catch (const Error&) {
    return std::nullopt;
  }
}

RunRecord record_of(const ReportRun& run, const std::string& command) {
  RunRecord record;
  record.environment = run.environment;
  record.command = command;
  record.arguments = fmt::format("ridgeline {} {}", command, run.model);
  record.group = run.group;
  // Runs of one call lie beside each other.
  if (!run.group.empty()) record.started = "2026-01-01T00:00:00Z";
  record.seed = 1;
  Work& work = record.work;
  work.model = run.model;
  work.settings = run.settings;
  if (const ModelInfo* model = model_of(run.model)) {
    for (const ModelOption& option : model->options) {
      work.settings.try_emplace(std::string(option.name), option.fallback);
    }
  }
  work.image = run.image;
  work.classes = 10;
  work.batch = run.batch;
  work.precision = run.precision;
  work.optimizer = "sgd";
  work.learning_rate = 0.01;
  work.momentum = 0.9;
  Executor& executor = record.executor;
  executor.backend = run.backend;
  executor.device = run.device;
  executor.threads = 2;
  executor.modes = run.modes;
  if (run.loader_wait > 0.0) {
    work.loader = true;
    work.data_samples = 6000;
    executor.workers = 1;
  }
  return record;
}

// Begins the run and, where it belongs to the study, its item.
RunId begin(Store& store, const ReportRun& run, RunRecord record, const std::string& what,
            const std::string& substitute = "") {
  if (!run.part.empty()) {
    record.study = study_of(run.environment);
    record.item = item_of(run, what);
    put_item(store, run, record.item, substitute);
  }
  if (run.change) run.change(record);
  if (const auto network = network_of(record.work)) {
    store.add(*network);
    record.network = network->key;
  }
  return store.begin(record);
}

void add_samples(Store& store, RunId id, const ReportRun& run, bool split) {
  std::vector<Sample> samples;
  const auto add = [&](SampleKind kind, std::int64_t block, double seconds) {
    Sample sample;
    sample.kind = kind;
    sample.block = block;
    sample.iteration = static_cast<std::int64_t>(samples.size());
    sample.at_seconds = run.seconds * static_cast<double>(samples.size());
    sample.wall_seconds = seconds;
    if (on_gpu(run)) sample.device_seconds = (kind == SampleKind::queued ? 1.0 : 0.9) * seconds;
    if (run.loader_wait > 0.0) {
      sample.data_wait_seconds = run.loader_wait;
      sample.upload_seconds = 0.0001;
    }
    samples.push_back(sample);
    return samples.size() - 1;
  };
  add(SampleKind::warmup, 0, 3.0 * run.seconds);
  add(SampleKind::warmup, 0, 1.5 * run.seconds);
  for (std::int64_t i = 0; i < run.count; ++i) {
    const double off = 0.001 * static_cast<double>(i * 7 % 11 - 5);
    add(SampleKind::measured, i / 2, run.seconds * (1.0 + off));
  }
  if (on_gpu(run) && !is_peer(run)) {
    for (std::int64_t i = 0; i < 11; ++i) add(SampleKind::queued, i, 0.95 * run.seconds);
  }
  for (std::int64_t i = 0; split && i < 5; ++i) {
    Sample& sample = samples[add(SampleKind::split, i, run.seconds)];
    sample.forward_seconds = 0.3 * run.seconds;
    sample.backward_seconds = 0.6 * run.seconds;
    sample.optimizer_seconds = 0.1 * run.seconds;
  }
  store.add(id, std::span<const Sample>(samples));
}

// A plan of eight steps, whatever the network: its shares are those of study 2's rows.
std::vector<StepTime> steps_of(const ReportRun& run) {
  struct Row {
    const char *layer, *ops, *phase;
    double time, work;  // shares
  };
  static constexpr std::array<Row, 8> kRows = {{
      {"input", "normalize", "input", 0.05, 0.0},
      {"fc1", "linear", "forward", 0.20, 0.30},
      {"act1", "activation", "forward", 0.05, 0.01},
      {"fc2", "linear", "forward", 0.05, 0.03},
      {"loss", "softmax_cross_entropy+metrics", "forward", 0.05, 0.01},
      {"fc2", "linear_backward_data", "backward-data", 0.20, 0.31},
      {"fc1", "linear_backward_weights", "backward-weights", 0.25, 0.33},
      {"fc1", "sgd", "optimizer", 0.10, 0.01},
  }};
  const double flops = report_flops(run.model) * static_cast<double>(run.batch);
  std::vector<StepTime> steps;
  for (const Row& row : kRows) {
    StepTime step;
    step.index = static_cast<std::int64_t>(steps.size());
    step.layer = row.layer;
    step.ops = row.ops;
    step.phase = row.phase;
    step.provider = on_gpu(run) ? "cuda" : "native";
    step.kernel = step.provider + ":" + row.ops;
    step.seconds = row.time * run.seconds;
    step.flops = step.work_flops = static_cast<std::int64_t>(row.work * flops);
    // Of ten FLOPs a byte; too much for any cache.
    step.bytes_read = static_cast<std::int64_t>(0.06 * flops * (row.work + 0.01));
    step.bytes_written = static_cast<std::int64_t>(0.04 * flops * (row.work + 0.01));
    step.working_set_bytes = std::int64_t{1} << 32;
    step.unit = "fp32";
    step.covers = fmt::format("{} {} {}", row.phase, row.ops, row.layer);
    steps.push_back(step);
  }
  return steps;
}

void add_readings(Store& store, RunId id, const ReportRun& run) {
  std::vector<Reading> readings;
  for (int i = 0; i < 20; ++i) {
    const double at = 0.1 * i, wave = i % 2 == 0 ? 1.0 : -1.0;
    readings.push_back({at, "cpu", "cpu_utilisation_percent", 60.0 + 10.0 * wave});
    readings.push_back({at, "cpu", "threads", 4.0});
    readings.push_back({at, "cpu", "processes", 1.0});
    readings.push_back({at, "cpu", "rss_bytes", 200e6 + 1e6 * i});
    readings.push_back({at, "cpu", "cpu_mhz", 3000.0});
    if (!on_gpu(run)) continue;
    readings.push_back({at, run.device, "gpu_utilisation_percent", 80.0 + 5.0 * wave});
    readings.push_back({at, run.device, "gpu_memory_utilisation_percent", 40.0 + 5.0 * wave});
    readings.push_back({at, run.device, "gpu_memory_used_bytes", 2e9});
    readings.push_back({at, run.device, "gpu_sm_mhz", 1500.0 + 100.0 * wave});
    readings.push_back({at, run.device, "gpu_temperature_celsius", 50.0 + 0.5 * i});
    readings.push_back({at, run.device, "gpu_power_watts", 250.0 + 50.0 * wave});
    readings.push_back({at, run.device, "gpu_energy_joules", 25.0 * i});
  }
  store.add(id, std::span<const Reading>(readings));
}

// As the ledger writes it: the entries of a device add up to its total.
void add_memory(Store& store, RunId id, const ReportRun& run) {
  std::vector<MemoryEntry> entries;
  if (is_peer(run)) {
    entries.push_back({"cpu", "peer process", "measured", 300'000'000});
    if (on_gpu(run)) {
      entries.push_back({run.device, "peer tensors", "measured", 1'000'000 * run.batch});
      entries.push_back({run.device, "peer allocator", "measured", 1'200'000 * run.batch});
    }
    store.add(id, std::span<const MemoryEntry>(entries));
    return;
  }
  const std::string& where = run.device;
  std::int64_t total = 0;
  const auto add = [&](const char* category, const char* source, std::int64_t bytes) {
    entries.push_back({where, category, source, bytes});
    total += bytes;
  };
  add("input", "planned", 1'000 * run.batch);
  add("parameter", "planned", 400'000);
  add("gradient", "planned", 400'000);
  add("optimizer state", "planned", 400'000);
  add("metric", "planned", 200);
  add("activation", "planned", 50'000 * run.batch);
  add("temporary", "planned", 5'000 * run.batch);
  add("workspace", "planned", 100'000);
  add("alignment", "planned", 64);
  add("libraries", "measured", on_gpu(run) ? 500'000'000 : 20'000'000);
  add("rest", "derived", 1'000'000);
  entries.push_back({where, "total", "measured", total});
  if (on_gpu(run)) {
    entries.push_back({"cpu", "libraries", "measured", 100'000'000});
    entries.push_back({"cpu", "heap", "measured", 50'000'000});
    entries.push_back({"cpu", "total", "measured", 150'000'000});
  }
  store.add(id, std::span<const MemoryEntry>(entries));
}

std::map<std::string, double> numbers_of(const ReportRun& run) {
  const double batch = static_cast<double>(run.batch);
  const double flops = report_flops(run.model) * batch;
  const bool queued = on_gpu(run) && !is_peer(run);
  std::map<std::string, double> numbers = {
      {"training_flops", flops},
      {"setup_seconds", 0.5},
      {"first_step_seconds", 4.0 * run.seconds},
      {"warmup_iterations", 2.0},
      {"measured_iterations", static_cast<double>(run.count)},
      {"median_seconds", run.seconds},
      {"samples_per_second", batch / (queued ? 0.95 * run.seconds : run.seconds)},
      {"achieved_flops_per_second", flops / run.seconds}};
  if (queued) numbers["queued_seconds"] = 0.95 * run.seconds;
  if (on_gpu(run)) numbers["energy_joules_per_sample"] = 0.002;
  if (is_peer(run)) {
    numbers["parity_max_difference"] = 1e-7;
    return numbers;
  }
  numbers["parameters"] = 100'000.0;
  numbers["forward_macs"] = flops / 6.0;
  numbers["forward_flops"] = flops / 3.0;
  numbers["executed_flops"] = flops;
  numbers["plan_bytes_read"] = 0.06 * flops * 1.08;
  numbers["plan_bytes_written"] = 0.04 * flops * 1.08;
  numbers["intensity"] = 1.0 / (0.1 * 1.08);
  numbers["planned_bytes"] = 1'300'264.0 + 56'000.0 * batch;
  numbers["step_sum_seconds"] = 0.95 * run.seconds;
  if (run.loader_wait > 0.0) numbers["data_wait_share"] = run.loader_wait / run.seconds;
  return numbers;
}

std::map<std::string, std::string> notes_of(const ReportRun& run) {
  std::map<std::string, std::string> notes = {
      {"clock", on_gpu(run) ? "host, device" : "host"},
      {"missing_sensors", "cpu cpu_temperature_celsius: no thermometer of the processor"}};
  if (is_peer(run)) {
    notes["parity"] = "losses of 3 steps agree: within 1.0e-07 (allowed 1e-03, step 3)";
  }
  return notes;
}

Ceiling ceiling(const char* device, const char* kind, const char* subject, const char* path,
                const char* scope, const char* unit, double value) {
  Ceiling made;
  made.device = device;
  made.kind = kind;
  made.subject = subject;
  made.path = path;
  made.scope = scope;
  made.unit = unit;
  made.value = made.low = made.high = value;
  made.measured = "2026-11-01T10:00:00.000Z";
  return made;
}

void add_profile_rows(Store& store, RunId id, const ReportRun& run) {
  std::vector<LiveEntry> live;
  std::vector<TimelineEntry> timeline;
  timeline.push_back({"iteration", "iteration", "host", 0.0, run.seconds, -1});
  double at = 0.0;
  for (const StepTime& step : steps_of(run)) {
    live.push_back({step.index, "parameter", 400'000});
    live.push_back({step.index, "activation", 10'000 * run.batch * (1 + step.index % 5)});
    timeline.push_back(
        {"step", step.layer + " " + step.ops, "host", at, at + step.seconds, step.index});
    if (on_gpu(run)) {
      timeline.push_back({"kernel", step.kernel, run.device, at + 0.1 * step.seconds,
                          at + step.seconds, step.index});
    }
    at += step.seconds;
  }
  store.add(id, std::span<const LiveEntry>(live));
  store.add(id, std::span<const TimelineEntry>(timeline));
}

}  // namespace

double report_flops(const std::string& model) {
  if (model == "mlp") return 50e3;
  return model == "mnist_cnn" ? 1.4e6 : 120e6;
}

void write_report_machines(Store& store) {
  store.add(EnvironmentRecord{.key = "desk",
                              .label = "desk",
                              .host = "desk",
                              .cpu = "Some CPU",
                              .gpus = "",
                              .fingerprint = R"({"cpu":{"processors":2,"max_mhz":3000.0}})"});
  store.add(EnvironmentRecord{.key = "server",
                              .label = "server",
                              .host = "server",
                              .cpu = "Other CPU",
                              .gpus = "Some GPU",
                              .fingerprint = R"({"cpu":{"processors":16,"max_mhz":2100.0}})"});
  const char* all = "all cores";
  std::vector<Ceiling> desk = {ceiling("cpu", "compute", "fp32", "avx2", all, "FLOP/s", 100e9),
                               ceiling("cpu", "bandwidth", "L2", "read", all, "B/s", 200e9),
                               ceiling("cpu", "bandwidth", "memory", "read", all, "B/s", 20e9),
                               ceiling("cpu", "latency", "fork-join", "", all, "s", 1e-6)};
  desk[0].datasheet = 125e9;
  desk[1].capacity_bytes = 1 << 20;
  store.replace_ceilings("desk", "cpu", desk);
  std::vector<Ceiling> gpu = {
      ceiling("cuda:0", "compute", "fp32", "cuda core", "device", "FLOP/s", 10e12),
      ceiling("cuda:0", "compute", "bf16", "tensor", "device", "FLOP/s", 100e12),
      ceiling("cuda:0", "bandwidth", "L2", "read", "device", "B/s", 4e12),
      ceiling("cuda:0", "bandwidth", "memory", "read", "device", "B/s", 1e12),
      ceiling("cuda:0", "latency", "graph node", "replayed", "device", "s", 1e-6),
      ceiling("cuda:0", "transfer", "to device", "pinned", "device", "B/s", 50e9)};
  gpu[1].datasheet = 200e12;
  gpu[2].capacity_bytes = 50 << 20;
  gpu[3].datasheet = 1.25e12;
  store.replace_ceilings("server", "cuda:0", gpu);
  for (const char* environment : {"desk", "server"}) {
    StudyRecord study;
    study.uuid = study_of(environment);
    study.name = "trial";
    study.scale = "small";
    study.environment = environment;
    study.definition = report_definition();
    study.started = "2026-11-01T10:00:00.000Z";
    study.finished = "2026-11-01T10:30:00.000Z";
    store.put(study);
  }
}

RunId write_report_bench(Store& store, const ReportRun& run) {
  const RunId id = begin(store, run, record_of(run, "bench"), fmt::format("batch={}", run.batch));
  add_samples(store, id, run, true);
  if (!is_peer(run)) store.add(id, std::span<const StepTime>(steps_of(run)));
  add_readings(store, id, run);
  add_memory(store, id, run);
  store.finish(id, RunStatus::complete, "", numbers_of(run), notes_of(run));
  return id;
}

RunId write_report_training(Store& store, const ReportTraining& training) {
  const ReportRun& run = training.run;
  RunRecord record = record_of(run, "train");
  Work& work = record.work;
  work.data = training.data;
  work.data_samples = training.samples;
  work.test_samples = 10'000;
  work.loader = true;
  record.executor.workers = 1;
  work.epochs = training.first_epoch + static_cast<std::int64_t>(training.accuracies.size());
  work.first_epoch = training.first_epoch;
  work.optimizer = training.optimizer;
  work.momentum = training.optimizer == "sgd" ? 0.9 : 0.0;
  work.learning_rate = training.learning_rate;
  const RunId id = begin(
      store, run, record,
      fmt::format("{} lr={}{}", training.optimizer, training.learning_rate, settings_text(work)),
      training.data + " in place of mnist");
  std::vector<EpochRecord> epochs;
  double best = 0.0;
  for (std::size_t i = 0; i < training.accuracies.size(); ++i) {
    EpochRecord epoch;
    epoch.epoch = training.first_epoch + static_cast<std::int64_t>(i) + 1;
    epoch.train_loss = 1.0 / static_cast<double>(i + 1);
    epoch.train_accuracy = training.accuracies[i] + 0.01;
    epoch.test_loss = epoch.train_loss + 0.1;
    epoch.test_accuracy = training.accuracies[i];
    epoch.samples = training.samples;
    epoch.seconds = training.seconds[i];
    epoch.data_wait_seconds = 0.1;
    epoch.evaluation_seconds = 0.5;
    best = std::max(best, training.accuracies[i]);
    epochs.push_back(epoch);
  }
  store.add(id, std::span<const EpochRecord>(epochs));
  add_readings(store, id, run);
  std::map<std::string, double> numbers = numbers_of(run);
  for (const char* name :
       {"median_seconds", "achieved_flops_per_second", "measured_iterations", "warmup_iterations",
        "samples_per_second", "queued_seconds", "step_sum_seconds"}) {
    numbers.erase(name);
  }
  numbers["final_loss"] = epochs.back().train_loss;
  numbers["final_test_accuracy"] = training.accuracies.back();
  numbers["best_test_accuracy"] = best;
  numbers.insert(training.former.begin(), training.former.end());
  store.finish(id, RunStatus::complete, "", numbers, notes_of(run));
  return id;
}

RunId write_report_profile(Store& store, const ReportRun& run) {
  const RunId id = begin(store, run, record_of(run, "profile"), "profile");
  store.add(id, std::span<const StepTime>(steps_of(run)));
  add_profile_rows(store, id, run);
  add_readings(store, id, run);
  add_memory(store, id, run);
  std::map<std::string, double> numbers = numbers_of(run);
  for (const char* name : {"median_seconds", "achieved_flops_per_second", "measured_iterations",
                           "samples_per_second", "queued_seconds"}) {
    numbers.erase(name);
  }
  numbers["profiled_iterations"] = 10.0;
  numbers["profiled_seconds"] = run.seconds;
  numbers["unprofiled_seconds"] = 0.99 * run.seconds;
  numbers["profiling_overhead_share"] = 0.0101;
  numbers["breakdown_kernel_seconds"] = 0.90 * run.seconds;
  numbers["breakdown_copy_seconds"] = 0.02 * run.seconds;
  numbers["breakdown_runtime_seconds"] = 0.03 * run.seconds;
  numbers["breakdown_data_seconds"] = 0.0;
  numbers["breakdown_cpu_seconds"] = 0.04 * run.seconds;
  numbers["breakdown_idle_seconds"] = 0.01 * run.seconds;
  store.finish(id, RunStatus::complete, "", numbers, notes_of(run));
  return id;
}

RunId write_report_inference(Store& store, const ReportRun& run) {
  RunRecord record = record_of(run, "bench");
  record.work.kind = "inference";
  record.work.optimizer = "";
  record.work.learning_rate.reset();
  record.work.momentum = 0.0;
  const RunId id = begin(store, run, record, fmt::format("inference batch={}", run.batch));
  add_samples(store, id, run, false);
  add_readings(store, id, run);
  std::map<std::string, double> numbers = numbers_of(run);
  numbers.erase("training_flops");
  numbers["latency_p50_seconds"] = run.seconds;
  numbers["latency_p90_seconds"] = 1.2 * run.seconds;
  numbers["latency_p95_seconds"] = 1.3 * run.seconds;
  numbers["latency_p99_seconds"] = 1.5 * run.seconds;
  store.finish(id, RunStatus::complete, "", numbers, notes_of(run));
  return id;
}

std::string report_definition() {
  std::string text = R"(
name = "trial"
title = "A trial of everything"
question = "Does the report show what was measured?"

[[part]]
id = "speed"
title = "Training steps"
command = "bench"
models = ["mlp", "mnist_cnn", "resnet18"]
backends = ["native", "torch-cpu", "auto", "torch-cuda"]

[[part]]
id = "sweep"
title = "Batches"
command = "bench"
models = ["mnist_cnn"]
backends = ["native", "auto"]
batches = [32, 64, 128, 256]

[[part]]
id = "ranks"
title = "Ranks"
command = "bench"
models = ["mnist_cnn"]
backends = ["native"]
ranks = [1, 2]

[[part]]
id = "training"
title = "Training"
command = "train"
models = ["mnist_cnn"]
backends = ["native", "auto"]
data = "mnist"
substitute = "fashion-mnist"
learning_rates = [0.01, 0.1]
epochs = 3

[[part]]
id = "profile"
title = "Where the time goes"
command = "profile"
models = ["mlp"]
backends = ["native", "auto"]

[[part]]
id = "inference"
title = "Inference"
command = "inference"
models = ["mnist_cnn"]
backends = ["native", "auto"]
batches = [1, 64]

[[hypothesis]]
id = "gpu-faster"
statement = "The GPU trains every network faster than the CPU."
test = "faster"
parts = ["speed"]
of = "device=cuda:0"
than = "device=cpu"

[[hypothesis]]
id = "gap-grows"
statement = "The gap grows with the network."
test = "speedup-grows"
parts = ["speed"]
of = "device=cuda:0"
than = "device=cpu"
axis = "training_flops"
)";
  const auto show = [&](const char* kind, std::string_view name, const char* parts) {
    text += fmt::format("\n[[show]]\n{} = \"{}\"\nparts = [{}]\n", kind, name, parts);
  };
  const char* all = R"("speed", "sweep", "ranks", "training", "profile", "inference")";
  for (const study::Word& word : study::table_names()) show("table", word.name, all);
  for (const study::Word& word : study::figure_names()) show("figure", word.name, all);
  return text;
}

void write_report_store(Store& store) {
  write_report_machines(store);
  // A GPU that takes a fifth, a tenth and a fiftieth of the processor's time.
  const std::map<std::string, std::pair<double, double>> seconds = {
      {"mlp", {0.001, 0.0002}}, {"mnist_cnn", {0.010, 0.001}}, {"resnet18", {0.500, 0.010}}};
  for (const auto& [model, times] : seconds) {
    ReportRun run;
    run.model = model;
    if (model == "resnet18") run.image = {3, 32, 32};
    run.group = "desk-" + model;
    run.seconds = times.first;
    write_report_bench(store, run);
    run.backend = "torch-cpu";
    run.seconds = 2.0 * times.first;
    write_report_bench(store, run);
    run.environment = "server";
    run.device = "cuda:0";
    run.group = "server-" + model;
    run.backend = "auto";
    run.seconds = times.second;
    write_report_bench(store, run);
    run.backend = "torch-cuda";
    run.seconds = 1.5 * times.second;
    write_report_bench(store, run);
  }
  for (const std::int64_t batch : {32, 64, 128, 256}) {
    ReportRun run;
    run.part = "sweep";
    run.batch = batch;
    // A fixed cost and one for each sample.
    run.seconds = 0.002 + 0.000125 * static_cast<double>(batch);
    write_report_bench(store, run);
    run.environment = "server";
    run.device = "cuda:0";
    run.backend = "auto";
    run.seconds = 0.0006 + 0.000005 * static_cast<double>(batch);
    write_report_bench(store, run);
  }
  for (const bool gpu : {false, true}) {
    ReportTraining training;
    training.run.part = "training";
    if (gpu) {
      training.run.environment = "server";
      training.run.device = "cuda:0";
      training.run.backend = "auto";
      training.seconds = {0.5, 0.2, 0.25};
    }
    write_report_training(store, training);
    training.learning_rate = 0.1;
    training.accuracies = gpu ? std::vector<double>{0.70, 0.88, 0.90}
                              : std::vector<double>{0.10, 0.101, 0.0995};  // at chance
    write_report_training(store, training);
    ReportRun run = training.run;
    run.part = "profile";
    run.model = "mlp";
    run.seconds = gpu ? 0.0002 : 0.001;
    write_report_profile(store, run);
    run.part = "inference";
    run.model = "mnist_cnn";
    run.batch = 1;
    run.seconds = gpu ? 0.0001 : 0.0004;
    write_report_inference(store, run);
    run.batch = 64;
    run.seconds = gpu ? 0.0004 : 0.004;
    write_report_inference(store, run);
  }
  // Two ranks share the batch of one, and each takes 0.6 of its time. A clipped norm tells this
  // work from all other.
  for (const int ranks : {1, 2}) {
    ReportRun run;
    run.part = "ranks";
    run.group = "desk-ranks";
    run.seconds = ranks == 1 ? 0.010 : 0.006;
    run.change = [ranks](RunRecord& record) {
      record.work.clip_norm = 1.0;
      record.executor.ranks = ranks;
      if (ranks == 2) record.executor.transport = "MPI";
    };
    write_report_bench(store, run);
  }
  StudyItemRecord left_out;
  left_out.study = study_of("desk");
  left_out.number = 1000;
  left_out.key = "speed/resnet18/cuda";
  left_out.title = "resnet18 on cuda:0";
  left_out.command = "bench resnet18 --device cuda:0";
  left_out.status = ItemStatus::left_out;
  left_out.reason = "no NVIDIA driver was found";
  store.put(std::vector<StudyItemRecord>{left_out});
}

}  // namespace ridgeline::testing
