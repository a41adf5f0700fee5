#pragma once

// What the laboratory writes down: the rows of the store, as plain structs. Units stand in the
// names; what was not measured is nothing, never zero.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "store/identity.h"

namespace ridgeline {

using RunId = std::int64_t;  // within one store; runs keep their uuid everywhere

// A machine with a build, as found when a run began.
struct EnvironmentRecord {
  std::string key;    // hash of the fingerprint and the label: the same environment, the same key
  std::string label;  // the user's own: "cloud CPU, 4 vCPU"; empty: none
  std::string host, cpu;
  std::string gpus;         // names, joined by "; "
  std::string fingerprint;  // JSON: everything else that is known of it

  // Builds of the program and limits of the day make environments of their own: a machine is what
  // its owner calls by one name, or what has the same host and processors.
  [[nodiscard]] std::vector<std::string> machine() const { return {label, host, cpu, gpus}; }
};

// A network, as it is built: described once for all runs that compute it.
struct NetworkRecord {
  std::string key;          // hash of the description
  std::string description;  // JSON
};

// A run that was killed stays "running": it could not say so.
enum class RunStatus { running, complete, interrupted, failed };

struct RunRecord {
  RunId id = 0;
  std::string uuid;               // of this run, everywhere
  std::string environment;        // key
  std::string command;            // "bench", "train", "profile"
  std::string arguments;          // the command line
  std::string group;              // uuid of the call that measured it
  std::string label;              // the user's
  std::string study;              // uuid of the study that it belongs to; empty: none
  std::string item;               // of that study: its key
  std::string started, finished;  // UTC, ISO 8601; empty: not finished
  RunStatus status = RunStatus::running;
  std::string error;  // why it failed
  // Which runs of the call took turns with it: those with the same number.
  std::int64_t turns = 0;
  std::int64_t seed = 0;
  std::string network;  // key; empty: no description
  Work work;
  Executor executor;
  // Numbers of the whole run by their registered names (columns.h): "training_flops",
  // "planned_bytes", "first_step_seconds", "setup_seconds", "autotune_seconds", …
  std::map<std::string, double> numbers;
  // The same for words: "providers", "clock", "parity", …
  std::map<std::string, std::string> notes;
};

// `queued`: iterations that were not waited for one by one, their mean as one sample. `watched`:
// after the turns, for the sensors, with no other one in between.
enum class SampleKind { warmup, measured, split, queued, watched };

// One iteration. `wall_seconds` is synchronised time by the host's clock.
struct Sample {
  std::int64_t process = 0;    // which of several
  std::int64_t block = 0;      // the turn in which it was measured
  std::int64_t iteration = 0;  // within the process, from 0; warm-up counted
  SampleKind kind = SampleKind::measured;
  double at_seconds = 0.0;  // since the run began
  double wall_seconds = 0.0;
  std::optional<double> device_seconds;  // by the device's own clock
  std::optional<double> data_wait_seconds, upload_seconds;
  // Of several ranks: in exchanges with each other, waiting counted, and of that the part in which
  // nothing was computed; means over the ranks.
  std::optional<double> exchange_seconds, exposed_seconds;
  // Of the step-split pass (kind split): phases waited for one after another.
  std::optional<double> forward_seconds, backward_seconds, optimizer_seconds;
};

// One step of the plan.
struct StepTime {
  std::int64_t index = 0;
  std::string layer, ops, phase, provider, kernel;
  double seconds = 0.0;         // mean over the middle passes, in their order
  std::int64_t flops = 0;       // executed: algorithmic times the kernel's factor
  std::int64_t work_flops = 0;  // algorithmic
  std::int64_t bytes_read = 0, bytes_written = 0;  // at its boundary
  std::int64_t working_set_bytes = 0;              // buffers and workspace that it touches
  std::string unit;                                // of the compute roof: "fp32", "tensor bf16"
  double flop_factor = 1.0;             // below 1: an algorithm that does fewer operations
  std::optional<double> counted_bytes;  // by hardware counters
  // Every op that it covers, "forward conv2d conv1; forward bias conv1": phase, kind, layer. Empty
  // for a reorder, and where it was not written down.
  std::string covers = {};
};

// One reading of one sensor. Names are registered in columns.h: "cpu_utilisation_percent",
// "gpu_power_watts", …; `device` is "cpu" or "cuda:0".
struct Reading {
  double at_seconds = 0.0;  // since the run began
  std::string device, sensor;
  double value = 0.0;
};

// Bytes by owner.
struct MemoryEntry {
  std::string device;    // where they lie
  std::string category;  // "parameter", "activation", …, "context", "libraries", "loader", "rest"
  std::string source;    // "planned", "measured", "derived"
  std::int64_t bytes = 0;
};

// What the hardware was measured to do at most.
struct Ceiling {
  std::string device;   // "cpu", "cuda:0"
  std::string kind;     // "compute", "bandwidth", "latency", "transfer"
  std::string subject;  // "fp32", "bf16"; "L1", "L2", "L3", "memory"; "kernel launch"; "to device"
  std::string path;     // "avx512", "cuda core", "tensor"; "read", "copy", "triad"; "pinned"
  std::string scope;    // "one core", "all cores", "device"
  std::string unit;     // "FLOP/s", "B/s", "s"
  double value = 0.0, low = 0.0, high = 0.0;  // median and range of the repeats
  std::optional<double> clock_mhz;            // during the test
  std::optional<double> datasheet;            // what the data sheet says, same unit
  std::int64_t capacity_bytes = 0;            // of a memory level; 0 elsewhere
  std::string measured = {};                  // UTC, ISO 8601; the store fills it in
  bool lower_bound = false;  // other programs kept the machine busy: the true one may be higher
};

// Something about a run that the reader must know, with its evidence.
struct Finding {
  std::string name;      // "thermal throttling", "periodic samples", "loader-bound"
  std::string severity;  // "note", "warning", "error"
  std::string evidence;  // one sentence with the numbers
};

// One epoch of a training.
struct EpochRecord {
  std::int64_t epoch = 0;  // from 1
  double train_loss = 0.0, train_accuracy = 0.0;
  std::optional<double> test_loss, test_accuracy;
  std::int64_t samples = 0;
  double seconds = 0.0, data_wait_seconds = 0.0, evaluation_seconds = 0.0;
  std::optional<double> energy_joules;
};

// Bytes of one owner that are alive while a step of the plan runs, as planned.
struct LiveEntry {
  std::int64_t step = 0;
  std::string category;  // as in MemoryEntry
  std::int64_t bytes = 0;
};

// Something that took time within one iteration of a profile: the one in the middle, by time.
struct TimelineEntry {
  std::string activity;  // "iteration", "step", "kernel", "copy", "runtime", "data_wait", …
  std::string name, track;
  double begin_seconds = 0.0, end_seconds = 0.0;  // since the iteration began
  std::int64_t step = -1;                         // of the plan; -1: none
};

// A study that was carried out on one machine: what its file said, and how far it came.
struct StudyRecord {
  std::string uuid;
  std::string name;               // "backends"
  std::string scale;              // "small", "full"
  std::string environment;        // key
  std::string options;            // what was chosen beside the scale: "only=sweep; data=photos"
  std::string definition;         // the text of its file
  std::string started, finished;  // UTC, ISO 8601; empty: not finished
};

// One piece of work of a study: a call of one command.
enum class ItemStatus { waiting, done, left_out, failed };
struct StudyItemRecord {
  std::string study;        // uuid
  std::int64_t number = 0;  // its place in the plan, from 0
  std::string key;          // "sweep/squeezenet1_1/batch=64": begins with the part of the study
  std::string title;        // for people
  std::string command;      // the words behind "ridgeline", as a shell takes them
  ItemStatus status = ItemStatus::waiting;
  std::string reason;      // why it was left out or failed
  std::string substitute;  // "synthetic images in place of tiny-imagenet-200"; empty: as asked for
  double estimated_seconds = 0.0;
  std::optional<double> seconds;  // that it took
};

}  // namespace ridgeline
