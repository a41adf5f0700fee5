#pragma once

// Every field of every record: its name, type, unit and meaning, once. Columns of the store, JSON,
// CSV, filters, comparisons, docs/store.md, tables, figures and sentences take it from here.

#include <array>
#include <concepts>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>

#include "store/records.h"

namespace ridgeline {

inline constexpr std::array<std::string_view, 4> kRunStatusNames = {"running", "complete",
                                                                    "interrupted", "failed"};
inline constexpr std::array<std::string_view, 5> kSampleKindNames = {"warmup", "measured", "split",
                                                                     "queued", "watched"};

inline constexpr std::array<std::string_view, 4> kItemStatusNames = {"waiting", "done", "left out",
                                                                     "failed"};

template <typename Enum>
[[nodiscard]] constexpr auto names_of() {
  if constexpr (std::same_as<Enum, RunStatus>) return kRunStatusNames;
  if constexpr (std::same_as<Enum, SampleKind>) return kSampleKindNames;
  if constexpr (std::same_as<Enum, ItemStatus>) return kItemStatusNames;
}

template <typename Enum>
concept StoredEnum = std::same_as<Enum, RunStatus> || std::same_as<Enum, SampleKind> ||
    std::same_as<Enum, ItemStatus>;

template <StoredEnum Enum>
[[nodiscard]] constexpr std::string_view name_of(Enum value) {
  return names_of<Enum>()[static_cast<std::size_t>(value)];
}

template <typename Enum>
[[nodiscard]] constexpr std::optional<Enum> parse_name(std::string_view name) {
  const auto names = names_of<Enum>();
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names[i] == name) return static_cast<Enum>(i);
  }
  return std::nullopt;
}

// Among which runs a difference in the field must be told: images come with a network, threads with
// a machine.
enum class Scope : std::uint8_t { all, network, machine };

// How people see a field of a run's identity.
struct Display {
  std::string_view label = {};     // the head of a table's column; empty: the field's name
  std::string_view phrase = "{}";  // in captions, names of series and sentences: "batch {}"
  std::string_view usual = {};     // the value that needs no mention
  Scope scope = Scope::all;
};

constexpr Display shown(std::string_view label, std::string_view phrase = "{}",
                        std::string_view usual = {}) {
  return {label, phrase, usual, Scope::all};
}
constexpr Display of_network(std::string_view label = {}, std::string_view phrase = "{}",
                             std::string_view usual = {}) {
  return {label, phrase, usual, Scope::network};
}
constexpr Display of_machine(std::string_view label, std::string_view phrase,
                             std::string_view usual = {}) {
  return {label, phrase, usual, Scope::machine};
}

template <typename Record, typename Type>
struct Field {
  std::string_view name;
  Type Record::*member;
  std::string_view unit, meaning;
  std::string_view constraint = {};  // SQL
  Display display = {};
};

template <typename Record>
struct Fields;  // `list`: a tuple of Field, in the order of the columns

template <>
struct Fields<EnvironmentRecord> {
  using R = EnvironmentRecord;
  static constexpr std::tuple list = {
      Field{"key", &R::key, "", "Hash of fingerprint and label", "NOT NULL PRIMARY KEY"},
      Field{"label", &R::label, "", "The user's own name for it (`--env-label`)"},
      Field{"host", &R::host, "", "Name of the machine"},
      Field{"cpu", &R::cpu, "", "Model of the processor"},
      Field{"gpus", &R::gpus, "", "Graphics processors, joined by `; `"},
      Field{"fingerprint", &R::fingerprint, "",
            "JSON: the part of `ridgeline env --json` that does not change"}};
};

template <>
struct Fields<NetworkRecord> {
  using R = NetworkRecord;
  static constexpr std::tuple list = {
      Field{"key", &R::key, "", "Hash of the description", "NOT NULL PRIMARY KEY"},
      Field{"description", &R::description, "",
            "JSON: the input and every operation of the forward pass, with its layer, the shape of "
            "its output, its FLOPs for one sample and what it reads"}};
};

template <>
struct Fields<Work> {
  using R = Work;
  static constexpr std::tuple list = {
      Field{"kind", &R::kind, "", "`training`, `inference` or `evaluation`", "",
            shown("kind", "{}", "training")},
      Field{"model", &R::model, "", "Name of the network", "", shown("network")},
      Field{"model_hash", &R::model_hash, "",
            "SHA-256 of the file that the network comes from, its first 16 digits; NULL: it is one "
            "of `ridgeline models`",
            "", shown("network file", "file {}")},
      Field{"settings", &R::settings, "", "JSON: settings of the network with their values", "",
            shown("options")},
      Field{"image", &R::image, "", "Channels x height x width of a sample", "",
            of_network("input", "inputs of {}")},
      Field{"classes", &R::classes, "", "Number of classes", "", of_network("", "{} classes")},
      Field{"init", &R::init, "", "Initial weights: `pytorch` or `he`", "",
            of_network("initial weights", "{} initial weights", "pytorch")},
      Field{"weights", &R::weights, "", "File of the initial weights, and its hash", "",
            of_network("", "weights of {}")},
      Field{"freeze", &R::freeze, "", "JSON: patterns of the parameters that are not trained", "",
            of_network("frozen", "{} frozen")},
      Field{"batch", &R::batch, "samples", "Samples of one iteration", "", shown("", "batch {}")},
      Field{"full_batch", &R::full_batch, "", "1: the whole dataset is one batch", "",
            shown("full batch")},
      Field{"micro_batch", &R::micro_batch, "samples",
            "The most samples that a process computes at a time; 0: all of its own", "",
            of_network("micro-batch", "micro-batch {}")},
      Field{"precision", &R::precision, "", "`fp32`, `tf32`, `bf16`, `fp16`"},
      Field{"optimizer", &R::optimizer, "", "`sgd`, `adam` or `adamw`; NULL: nothing is trained",
            "", of_network()},
      Field{"learning_rate", &R::learning_rate, "", "At the start of the training", "",
            of_network("learning rate", "learning rate {}")},
      Field{"momentum", &R::momentum, "", "Of sgd", "", of_network("", "momentum {}")},
      Field{"nesterov", &R::nesterov, "", "1: Nesterov's momentum", "", of_network()},
      Field{"weight_decay", &R::weight_decay, "", "Of the optimizer", "",
            of_network("weight decay", "weight decay {}")},
      Field{"label_smoothing", &R::label_smoothing, "", "Of the loss", "",
            of_network("label smoothing", "label smoothing {}")},
      Field{"clip_norm", &R::clip_norm, "", "Largest norm of the gradients; 0: any", "",
            of_network("clipped norm", "norm clipped at {}")},
      Field{"synchronised_norms", &R::synchronised_norms, "",
            "1: batch norms over the samples of all ranks", "",
            of_network("synchronised batch norms")},
      Field{"loss_scale", &R::loss_scale, "", "First loss scale with fp16, if it was set", "",
            of_network("loss scale", "loss scale {}")},
      Field{"data", &R::data, "", "Dataset, or `synthetic`", "", of_network("", "data: {}")},
      Field{"data_samples", &R::data_samples, "samples",
            "Size of the dataset; 0: one batch on the device is used again", "",
            of_network("samples", "{} samples")},
      Field{"test_samples", &R::test_samples, "samples", "Size of the test set", "",
            of_network("test samples", "{} test samples")},
      Field{"normalisation", &R::normalisation, "",
            "JSON: mean of each channel, then their deviations; empty: pixels / 255", "",
            of_network("", "normalised by {}")},
      Field{"augment", &R::augment, "",
            "`none`, `flip`: mirrored at random, `crop`: random resized crop and flip", "",
            of_network("augmentation", "augmentation {}", "none")},
      Field{"loader", &R::loader, "", "1: each iteration gets its batch through the loader", "",
            of_network("batches through the loader")},
      Field{"last_batch", &R::last_batch, "",
            "The last, incomplete batch of an epoch: `smaller`, `drop` or `repeat`", "",
            of_network("last batch", "last batch: {}", "smaller")},
      Field{
          "epochs", &R::epochs, "",
          "Requested epochs of a training (iterations with full batches); 0: single iterations are "
          "measured",
          "", of_network("epochs asked for", "{} epochs")},
      Field{"first_epoch", &R::first_epoch, "",
            "Epochs that were done before, in a resumed training", "",
            of_network("resumed after epoch", "resumed after epoch {}")},
      Field{"target_accuracy", &R::target_accuracy, "share", "Training ends when a test reaches it",
            "", of_network("target accuracy", "target accuracy {}")},
      Field{"schedule", &R::schedule, "", "Of the learning rate: `constant`, `step` or `cosine`",
            "", of_network("", "{} schedule", "constant")},
      Field{"schedule_step", &R::schedule_step, "", "Epochs between two drops of schedule `step`",
            "", of_network("schedule step", "a drop every {} epochs")},
      Field{"schedule_gamma", &R::schedule_gamma, "", "Factor of a drop", "",
            of_network("schedule factor", "by a factor of {}")},
      Field{"warmup_epochs", &R::warmup_epochs, "", "In which the learning rate rises", "",
            of_network("warm-up epochs", "{} warm-up epochs")}};
};

template <>
struct Fields<Executor> {
  using R = Executor;
  static constexpr std::tuple list = {
      Field{"backend", &R::backend, "", "Backend or peer: `native`, `auto`, `torch-cpu`, …"},
      Field{"device", &R::device, "", "Device: `cpu`, `cuda:0`", "", shown("", "on {}")},
      Field{"threads", &R::threads, "", "On the host", "", of_machine("", "{} threads")},
      Field{"workers", &R::workers, "", "Threads of the loader; 0: there is none", "",
            of_machine("loader threads", "{} loader threads")},
      Field{"decoder", &R::decoder, "",
            "`gpu`, `nvjpeg` or `nvjpeg-cuda`: what decodes JPEG images; NULL: the host alone", "",
            of_machine("decoder", "decoded by {}")},
      Field{"ranks", &R::ranks, "", "Processes that share the work", "",
            shown("", "{} ranks", "1")},
      Field{"nodes", &R::nodes, "", "Machines that they run on", "",
            of_machine("", "{} machines", "1")},
      Field{"transport", &R::transport, "",
            "What joins them: the MPI library, or `unconnected`: they compute at the same time and "
            "exchange nothing; NULL: there is one",
            "", of_machine("transport", "{}")},
      Field{"bucket_bytes", &R::bucket_bytes, "bytes",
            "Gradients that travel together; 0: none travel", "",
            of_machine("buckets", "buckets of {} bytes")},
      Field{"reduce", &R::reduce, "",
            "`bf16` or `fp16`: how gradients travel between ranks; NULL: as they are", "",
            shown("gradients travel as", "gradients as {}")},
      Field{"deterministic", &R::deterministic, "",
            "1: only kernels that give the same bits in every run"},
      Field{"recompute", &R::recompute, "",
            "1: outputs of batch norms are computed again instead of being kept"},
      Field{"disabled_passes", &R::disabled_passes, "",
            "JSON: passes of planning that are turned off", "", shown("passes off", "without {}")},
      Field{"modes", &R::modes, "", "JSON: how a peer computes: `channels_last`, `compile`"}};
};

// Without id, work, executor, numbers and notes.
template <>
struct Fields<RunRecord> {
  using R = RunRecord;
  static constexpr std::tuple list = {
      Field{"uuid", &R::uuid, "", "The run's name in every store", "NOT NULL UNIQUE"},
      Field{"environment", &R::environment, "", "Key of the environment",
            R"(REFERENCES "environments" ("key"))"},
      Field{"command", &R::command, "", "`bench`, `train`, `profile`, …"},
      Field{"arguments", &R::arguments, "", "The command line"},
      Field{"group", &R::group, "", "Shared by the runs of one call (a word of SQL: quote it)"},
      Field{"turns", &R::turns, "",
            "Runs of one call with the same number took turns with each other; runs that did not "
            "fit into memory together have different numbers"},
      Field{"label", &R::label, "", "The user's (`--label`)"},
      Field{"study", &R::study, "", "The uuid of the study that it belongs to"},
      Field{"item", &R::item, "", "The study's item that it belongs to"},
      Field{"started", &R::started, "", "UTC, ISO 8601"},
      Field{"finished", &R::finished, "", "UTC, ISO 8601; NULL: not finished"},
      Field{"status", &R::status, "", "`running` (or killed), `complete`, `interrupted`, `failed`"},
      Field{"error", &R::error, "", "Why it failed"},
      Field{"seed", &R::seed, "", "Of weights, data order and dropout"},
      Field{"network", &R::network, "", "Key of the network's description",
            R"(REFERENCES "networks" ("key"))"}};
};

template <>
struct Fields<Sample> {
  using R = Sample;
  static constexpr std::string_view table = "samples";
  static constexpr std::tuple list = {
      Field{"process", &R::process, "", "Which of several processes, from 0"},
      Field{"block", &R::block, "", "The turn in which it was measured"},
      Field{"iteration", &R::iteration, "", "Within the process, from 0; warm-up counted"},
      Field{"kind", &R::kind, "",
            "`warmup`, `measured`, `split`: phases waited for one by one, `queued`: the mean of "
            "some that were not waited for one by one, or `watched`: for the sensors alone"},
      Field{"at_seconds", &R::at_seconds, "s", "Since the run began"},
      Field{"wall_seconds", &R::wall_seconds, "s",
            "One iteration, synchronised, by the host's clock"},
      Field{"device_seconds", &R::device_seconds, "s", "The same by the device's own clock"},
      Field{"data_wait_seconds", &R::data_wait_seconds, "s", "Of that, waiting for the loader"},
      Field{"upload_seconds", &R::upload_seconds, "s", "Of that, from host to device"},
      Field{"exchange_seconds", &R::exchange_seconds, "s",
            "Of several ranks: in exchanges with each other, mean over the ranks"},
      Field{"exposed_seconds", &R::exposed_seconds, "s",
            "Of that, the part in which nothing was computed"},
      Field{"forward_seconds", &R::forward_seconds, "s", "Forward phase (kind `split`)"},
      Field{"backward_seconds", &R::backward_seconds, "s", "Backward phase (kind `split`)"},
      Field{"optimizer_seconds", &R::optimizer_seconds, "s", "Optimizer (kind `split`)"}};
};

template <>
struct Fields<StepTime> {
  using R = StepTime;
  static constexpr std::string_view table = "steps";
  static constexpr std::tuple list = {
      Field{"index", &R::index, "", "Of the step in the plan (a word of SQL: quote it)"},
      Field{"layer", &R::layer, "", "Path of the layer: `layer1.0.conv1`"},
      Field{"ops", &R::ops, "", "Operations that it covers, joined by `+`"},
      Field{"phase", &R::phase, "", "`input`, `forward`, `backward_data`, `backward_weights`, …"},
      Field{"provider", &R::provider, "", "The backend whose kernel it is"},
      Field{"kernel", &R::kernel, "", "Name of the kernel"},
      Field{"seconds", &R::seconds, "s",
            "Mean over the middle of some passes, steps in their order"},
      Field{"flops", &R::flops, "FLOP", "Executed: algorithmic times the kernel's factor"},
      Field{"work_flops", &R::work_flops, "FLOP", "Algorithmic; 2 for each multiply-add"},
      Field{"bytes_read", &R::bytes_read, "B", "At the step's boundary"},
      Field{"bytes_written", &R::bytes_written, "B", "At the step's boundary"},
      Field{"working_set_bytes", &R::working_set_bytes, "B",
            "Buffers and workspace that it touches"},
      Field{"unit", &R::unit, "", "Its compute roof: `fp32`, `tensor bf16`, `amx bf16`"},
      Field{"flop_factor", &R::flop_factor, "", "Below 1: an algorithm of fewer operations"},
      Field{"counted_bytes", &R::counted_bytes, "B", "By hardware counters"},
      Field{"covers", &R::covers, "", "Every op in it: phase, kind, layer; joined by `; `"}};
};

template <>
struct Fields<Reading> {
  using R = Reading;
  static constexpr std::string_view table = "readings";
  static constexpr std::tuple list = {
      Field{"at_seconds", &R::at_seconds, "s", "Since the run began"},
      Field{"device", &R::device, "", "`cpu`, `cuda:0`"},
      Field{"sensor", &R::sensor, "", "A registered name, see below"},
      Field{"value", &R::value, "", "In the unit that the sensor's name ends with"}};
};

template <>
struct Fields<MemoryEntry> {
  using R = MemoryEntry;
  static constexpr std::string_view table = "memory";
  static constexpr std::tuple list = {
      Field{"device", &R::device, "", "Device of the memory"},
      Field{"category", &R::category, "",
            "Their owner: `parameter`, `activation`, `context`, `rest`, …"},
      Field{"source", &R::source, "", "`planned`, `measured` or `derived`"},
      Field{"bytes", &R::bytes, "B", "How many"}};
};

template <>
struct Fields<Finding> {
  using R = Finding;
  static constexpr std::string_view table = "findings";
  static constexpr std::tuple list = {
      Field{"name", &R::name, "", "`thermal throttling`, `periodic samples`, `loader-bound`, …"},
      Field{"severity", &R::severity, "", "`note`, `warning` or `error`"},
      Field{"evidence", &R::evidence, "", "One sentence with the numbers"}};
};

template <>
struct Fields<EpochRecord> {
  using R = EpochRecord;
  static constexpr std::string_view table = "epochs";
  static constexpr std::tuple list = {
      Field{"epoch", &R::epoch, "", "From 1"},
      Field{"train_loss", &R::train_loss, "", "Mean over the epoch; NULL: not a number"},
      Field{"train_accuracy", &R::train_accuracy, "", "0 to 1"},
      Field{"test_loss", &R::test_loss, "", "After the epoch"},
      Field{"test_accuracy", &R::test_accuracy, "", "After the epoch, 0 to 1"},
      Field{"samples", &R::samples, "samples", "Trained on in the epoch"},
      Field{"seconds", &R::seconds, "s", "Of training, without evaluation"},
      Field{"data_wait_seconds", &R::data_wait_seconds, "s", "Of that, waiting for the loader"},
      Field{"evaluation_seconds", &R::evaluation_seconds, "s", "Of evaluation"},
      Field{"energy_joules", &R::energy_joules, "J", "Of all devices that report it"}};
};

template <>
struct Fields<LiveEntry> {
  using R = LiveEntry;
  static constexpr std::string_view table = "live_bytes";
  static constexpr std::tuple list = {
      Field{"step", &R::step, "", "Of the plan, from 0"},
      Field{"category", &R::category, "", "Their owner, as in `memory`"},
      Field{"bytes", &R::bytes, "B", "Alive while the step runs"}};
};

template <>
struct Fields<TimelineEntry> {
  using R = TimelineEntry;
  static constexpr std::string_view table = "timeline";
  static constexpr std::tuple list = {
      Field{"activity", &R::activity, "",
            "`iteration`, `step`, `kernel`, `copy`, `runtime`, `data_wait`, …"},
      Field{"name", &R::name, "", "Of the step, the kernel or the call"},
      Field{"track", &R::track, "", "`host`, `thread 1`, `stream 7`"},
      Field{"begin_seconds", &R::begin_seconds, "s", "Since the iteration began"},
      Field{"end_seconds", &R::end_seconds, "s", "Since the iteration began"},
      Field{"step", &R::step, "", "Of the plan; -1: none"}};
};

template <>
struct Fields<StudyRecord> {
  using R = StudyRecord;
  static constexpr std::tuple list = {
      Field{"uuid", &R::uuid, "", "The study's name in every store", "NOT NULL PRIMARY KEY"},
      Field{"name", &R::name, "", "`backends`, `roofline`, …"},
      Field{"scale", &R::scale, "", "`small` or `full`"},
      Field{"environment", &R::environment, "", "Key of the environment",
            R"(REFERENCES "environments" ("key"))"},
      Field{"options", &R::options, "", "What was chosen beside the scale"},
      Field{"definition", &R::definition, "", "The text of its file"},
      Field{"started", &R::started, "", "UTC, ISO 8601"},
      Field{"finished", &R::finished, "", "UTC, ISO 8601; NULL: not finished"}};
};

template <>
struct Fields<StudyItemRecord> {
  using R = StudyItemRecord;
  static constexpr std::tuple list = {
      Field{"study", &R::study, "", "The study's uuid",
            R"(NOT NULL REFERENCES "studies" ("uuid") ON DELETE CASCADE)"},
      Field{"number", &R::number, "", "Its place in the plan, from 0", "NOT NULL"},
      Field{"key", &R::key, "", "What it is, beginning with the part of the study", "NOT NULL"},
      Field{"title", &R::title, "", "The same for people"},
      Field{"command", &R::command, "", "The words behind `ridgeline`"},
      Field{"status", &R::status, "", "`waiting`, `done`, `left out` or `failed`"},
      Field{"reason", &R::reason, "", "Why it was left out or failed"},
      Field{"substitute", &R::substitute, "", "What took the place of data that were not there"},
      Field{"estimated_seconds", &R::estimated_seconds, "s", "Thought of before"},
      Field{"seconds", &R::seconds, "s", "That it took"}};
};

template <>
struct Fields<Ceiling> {
  using R = Ceiling;
  static constexpr std::tuple list = {
      Field{"device", &R::device, "",
            "`cpu`, `cuda:0`; `ranks:4`, `gpu-ranks:4`: the links of so many", "NOT NULL"},
      Field{"kind", &R::kind, "", "`compute`, `bandwidth`, `latency`, `transfer` or `link`"},
      Field{"subject", &R::subject, "",
            "`fp32`; `L1`, `memory`; `kernel launch`; `to device`; `all-reduce`"},
      Field{"path", &R::path, "",
            "`avx512`, `tensor`; `read`, `triad`; `pinned`; `algorithm`, `bus`"},
      Field{"scope", &R::scope, "", "`one core`, `all cores`, `device`; the MPI library of ranks"},
      Field{"unit", &R::unit, "", "Of value, low, high and datasheet: `FLOP/s`, `B/s`, `s`"},
      Field{"value", &R::value, "", "Median of the repeats, in `unit`"},
      Field{"low", &R::low, "", "Least of the repeats"},
      Field{"high", &R::high, "", "Greatest of the repeats"},
      Field{"clock_mhz", &R::clock_mhz, "MHz", "During the test"},
      Field{"datasheet", &R::datasheet, "", "What the data sheet says, in `unit`"},
      Field{"capacity_bytes", &R::capacity_bytes, "B",
            "Of a memory level or a message; 0 elsewhere"},
      Field{"measured", &R::measured, "", "When; UTC, ISO 8601"},
      Field{"lower_bound", &R::lower_bound, "",
            "1: other programs kept the machine busy; the true ceiling may be higher"}};
};

// Where rows of a run lie.
template <typename Row>
inline constexpr std::string_view row_table = Fields<Row>::table;

// visit(field) for every entry of the list.
template <typename Record, typename Visit>
void visit_list(Visit&& visit) {
  std::apply([&](const auto&... field) { (visit(field), ...); }, Fields<Record>::list);
}

// visit(name, value) for every field of a record, which may be const.
template <typename Row, typename Visit>
void visit_own_fields(Row& row, Visit&& visit) {
  visit_list<std::remove_const_t<Row>>(
      [&](const auto& field) { visit(field.name, row.*field.member); });
}

// The same with work and executor of a run: a row of its table, without the id.
template <typename Row, typename Visit>
void visit_fields(Row& row, Visit&& visit) {
  visit_own_fields(row, visit);
  if constexpr (std::same_as<std::remove_const_t<Row>, RunRecord>) {
    visit_own_fields(row.work, visit);
    visit_own_fields(row.executor, visit);
  }
}

}  // namespace ridgeline
