#include "lab/store/columns.h"

#include <algorithm>
#include <array>

#include "base/error.h"

namespace ridgeline {
namespace {

using enum ColumnType;

constexpr std::string_view kOfRun = R"(NOT NULL REFERENCES "runs" ("id") ON DELETE CASCADE)";
constexpr Column kRun = {"run", integer, "", "Number of the run", kOfRun};
constexpr Column kNumber = {"number", integer, "", "Order of writing within the run, from 0",
                            "NOT NULL"};
constexpr std::string_view kInRun = "run, number";

constexpr std::array kEnvironments = {
    Column{"key", text, "", "Hash of fingerprint and label", "NOT NULL PRIMARY KEY"},
    Column{"label", text, "", "The user's own name for it (`--env-label`)"},
    Column{"host", text, "", "Name of the machine"},
    Column{"cpu", text, "", "Model of the processor"},
    Column{"gpus", text, "", "Graphics processors, joined by `; `"},
    Column{"fingerprint", text, "", "JSON: all that `ridgeline env --json` tells and that stays"},
};

constexpr std::array kRuns = {
    Column{"id", integer, "", "Number of the run in this store; never used twice",
           "PRIMARY KEY AUTOINCREMENT"},
    Column{"uuid", text, "", "The run's name in every store", "NOT NULL UNIQUE"},
    Column{"environment", text, "", "Key of the environment",
           R"(REFERENCES "environments" ("key"))"},
    Column{"command", text, "", "`bench`, `train`, `profile`, …"},
    Column{"arguments", text, "", "The command line"},
    Column{"group", text, "",
           "Shared by runs that one call measured side by side (a word of SQL: quote it)"},
    Column{"label", text, "", "The user's (`--label`)"},
    Column{"started", text, "", "UTC, ISO 8601"},
    Column{"finished", text, "", "UTC, ISO 8601; NULL: not finished"},
    Column{"status", text, "",
           "`running` (or killed before it could say), `complete`, `interrupted`, `failed`"},
    Column{"error", text, "", "Why it failed"},
    Column{"seed", integer, "", "Of weights, data order and dropout"},
    Column{"kind", text, "", "`training` or `inference`"},
    Column{"model", text, "", "Name of the network"},
    Column{"settings", text, "", "The model's options, sorted"},
    Column{"batch", integer, "samples", "Samples of one iteration"},
    Column{"image", text, "", "Channels x height x width"},
    Column{"classes", integer, "", "Classes that the network tells apart"},
    Column{"precision", text, "", "`fp32`, `tf32`, `bf16`, `fp16`"},
    Column{"optimizer", text, "", "With its settings; NULL for inference"},
    Column{"data", text, "", "Data set, or `synthetic`"},
    Column{"data_samples", integer, "samples", "In the data set"},
    Column{"normalisation", text, "", "Of the input"},
    Column{"variant", text, "", "What else changes the work: `freeze=features.*`"},
    Column{"backend", text, "", "Who computed: `native`, `auto`, `torch-cpu`, …"},
    Column{"device", text, "", "Where: `cpu`, `cuda:0`"},
    Column{"threads", integer, "", "On the host"},
    Column{"options", text, "", "How: `deterministic`, `amp,channels_last`"},
    Column{"study", text, "", "The uuid of the study that it belongs to"},
    Column{"item", text, "", "The study's item that it belongs to"},
};

constexpr std::array kRunNumbers = {
    kRun,
    Column{"name", text, "", "A registered name, see below", "NOT NULL"},
    Column{"value", real, "", "In the unit that the name ends with"},
};

constexpr std::array kRunNotes = {
    kRun,
    Column{"name", text, "", "A registered name, see below", "NOT NULL"},
    Column{"value", text, "", "Words"},
};

constexpr std::array kSamples = {
    kRun,
    kNumber,
    Column{"process", integer, "", "Which of several processes, from 0"},
    Column{"block", integer, "", "The turn in which it was measured"},
    Column{"iteration", integer, "", "Within the process, from 0; warm-up counted"},
    Column{"kind", text, "",
           "`warmup`, `measured`, `split`: phases waited for one by one, `queued`: the mean of "
           "some that were not waited for one by one, or `watched`: for the sensors alone"},
    Column{"at_seconds", real, "s", "Since the run began"},
    Column{"wall_seconds", real, "s", "One iteration, synchronised, by the host's clock"},
    Column{"device_seconds", real, "s", "The same by the device's own clock"},
    Column{"data_wait_seconds", real, "s", "Of that, waiting for the loader"},
    Column{"upload_seconds", real, "s", "Of that, from host to device"},
    Column{"forward_seconds", real, "s", "Forward phase (kind `split`)"},
    Column{"backward_seconds", real, "s", "Backward phase (kind `split`)"},
    Column{"optimizer_seconds", real, "s", "Optimizer (kind `split`)"},
};

constexpr std::array kSteps = {
    kRun,
    kNumber,
    Column{"index", integer, "", "Of the step in the plan (a word of SQL: quote it)"},
    Column{"layer", text, "", "Path of the layer: `layer1.0.conv1`"},
    Column{"ops", text, "", "Operations that it covers, joined by `+`"},
    Column{"phase", text, "", "`input`, `forward`, `backward_data`, `backward_weights`, …"},
    Column{"provider", text, "", "The backend whose kernel it is"},
    Column{"kernel", text, "", "Name of the kernel"},
    Column{"seconds", real, "s", "Mean over the middle of some passes, steps in their order"},
    Column{"flops", integer, "FLOP", "Executed: algorithmic times the kernel's factor"},
    Column{"work_flops", integer, "FLOP", "Algorithmic; 2 for each multiply-add"},
    Column{"bytes_read", integer, "B", "At the step's boundary"},
    Column{"bytes_written", integer, "B", "At the step's boundary"},
    Column{"working_set_bytes", integer, "B", "Buffers and workspace that it touches"},
    Column{"unit", text, "", "Its compute roof: `fp32`, `tensor bf16`"},
    Column{"flop_factor", real, "", "Below 1: an algorithm of fewer operations"},
    Column{"counted_bytes", real, "B", "By hardware counters"},
    Column{"covers", text, "", "Every op in it: phase, kind, layer; joined by `; `"},
};

constexpr std::array kReadings = {
    kRun,
    kNumber,
    Column{"at_seconds", real, "s", "Since the run began"},
    Column{"device", text, "", "`cpu`, `cuda:0`"},
    Column{"sensor", text, "", "A registered name, see below"},
    Column{"value", real, "", "In the unit that the sensor's name ends with"},
};

constexpr std::array kMemory = {
    kRun,
    kNumber,
    Column{"device", text, "", "Where the bytes lie"},
    Column{"category", text, "", "Their owner: `parameter`, `activation`, `context`, `rest`, …"},
    Column{"source", text, "", "`planned`, `measured` or `derived`"},
    Column{"bytes", integer, "B", "How many"},
};

constexpr std::array kFindings = {
    kRun,
    kNumber,
    Column{"name", text, "", "`thermal throttling`, `periodic samples`, `loader-bound`, …"},
    Column{"severity", text, "", "`note`, `warning` or `error`"},
    Column{"evidence", text, "", "One sentence with the numbers"},
};

constexpr std::array kEpochs = {
    kRun,
    kNumber,
    Column{"epoch", integer, "", "From 1"},
    Column{"train_loss", real, "", "Mean over the epoch; NULL: not a number"},
    Column{"train_accuracy", real, "", "0 to 1"},
    Column{"test_loss", real, "", "After the epoch"},
    Column{"test_accuracy", real, "", "After the epoch, 0 to 1"},
    Column{"samples", integer, "samples", "Trained on in the epoch"},
    Column{"seconds", real, "s", "Of training, without evaluation"},
    Column{"data_wait_seconds", real, "s", "Of that, waiting for the loader"},
    Column{"evaluation_seconds", real, "s", "Beside it"},
    Column{"energy_joules", real, "J", "Of all devices that tell"},
};

constexpr std::array kLiveBytes = {
    kRun,
    kNumber,
    Column{"step", integer, "", "Of the plan, from 0"},
    Column{"category", text, "", "Their owner, as in `memory`"},
    Column{"bytes", integer, "B", "Alive while the step runs"},
};

constexpr std::array kTimeline = {
    kRun,
    kNumber,
    Column{"activity", text, "",
           "`iteration`, `step`, `kernel`, `copy`, `runtime`, `data_wait`, …"},
    Column{"name", text, "", "Of the step, the kernel or the call"},
    Column{"track", text, "", "`host`, `thread 1`, `stream 7`"},
    Column{"begin_seconds", real, "s", "Since the iteration began"},
    Column{"end_seconds", real, "s", "Since the iteration began"},
    Column{"step", integer, "", "Of the plan; -1: none"},
};

constexpr std::array kStudies = {
    Column{"uuid", text, "", "The study's name in every store", "NOT NULL PRIMARY KEY"},
    Column{"name", text, "", "`backends`, `roofline`, …"},
    Column{"scale", text, "", "`small` or `full`"},
    Column{"environment", text, "", "Key of the environment",
           R"(REFERENCES "environments" ("key"))"},
    Column{"options", text, "", "What was chosen beside the scale"},
    Column{"definition", text, "", "The text of its file"},
    Column{"started", text, "", "UTC, ISO 8601"},
    Column{"finished", text, "", "UTC, ISO 8601; NULL: not finished"},
};

constexpr std::array kStudyItems = {
    Column{"study", text, "", "The study's uuid",
           R"(NOT NULL REFERENCES "studies" ("uuid") ON DELETE CASCADE)"},
    Column{"number", integer, "", "Its place in the plan, from 0", "NOT NULL"},
    Column{"key", text, "", "What it is, beginning with the part of the study", "NOT NULL"},
    Column{"title", text, "", "The same for people"},
    Column{"command", text, "", "The words behind `ridgeline`"},
    Column{"status", text, "", "`waiting`, `done`, `left out` or `failed`"},
    Column{"reason", text, "", "Why it was left out or failed"},
    Column{"substitute", text, "", "What took the place of data that were not there"},
    Column{"estimated_seconds", real, "s", "Thought of before"},
    Column{"seconds", real, "s", "That it took"},
};

constexpr std::array kCeilings = {
    Column{"environment", text, "", "Key of the environment",
           R"(NOT NULL REFERENCES "environments" ("key") ON DELETE CASCADE)"},
    Column{"device", text, "", "`cpu`, `cuda:0`", "NOT NULL"},
    Column{"number", integer, "", "Order of writing for the device, from 0", "NOT NULL"},
    Column{"kind", text, "", "`compute`, `bandwidth`, `latency` or `transfer`"},
    Column{"subject", text, "", "`fp32`; `L1`, `memory`; `kernel launch`; `to device`"},
    Column{"path", text, "", "`avx512`, `tensor`; `read`, `triad`; `pinned`"},
    Column{"scope", text, "", "`one core`, `all cores`, `device`"},
    Column{"unit", text, "", "Of value, low, high and datasheet: `FLOP/s`, `B/s`, `s`"},
    Column{"value", real, "", "Median of the repeats, in `unit`"},
    Column{"low", real, "", "Least of the repeats"},
    Column{"high", real, "", "Greatest of the repeats"},
    Column{"clock_mhz", real, "MHz", "During the test"},
    Column{"datasheet", real, "", "What the data sheet says, in `unit`"},
    Column{"capacity_bytes", integer, "B", "Of a memory level; 0 elsewhere"},
    Column{"measured", text, "", "When; UTC, ISO 8601"},
};

constexpr std::array kTables = {
    Table{"environments", "A machine with a build, as found when runs began.", kEnvironments},
    Table{"runs",
          "One configuration measured once: what was computed, by whom, when, how it ended.",
          kRuns},
    Table{"run_numbers", "Numbers of a whole run.", kRunNumbers, "run, name"},
    Table{"run_notes", "Words about a whole run.", kRunNotes, "run, name"},
    Table{"samples", "One iteration a row. Nothing is left out, outliers neither.", kSamples,
          kInRun},
    Table{"steps", "Time and cost of every step of the plan.", kSteps, kInRun},
    Table{"readings", "One value of one sensor, read while the run went on.", kReadings, kInRun},
    Table{"memory", "Bytes by owner.", kMemory, kInRun},
    Table{"findings", "What the reader of a run must know.", kFindings, kInRun},
    Table{"epochs", "One epoch of a training a row.", kEpochs, kInRun},
    Table{"live_bytes", "What lives in memory at each step of a profiled plan.", kLiveBytes,
          kInRun},
    Table{"timeline", "What happens during one iteration of a profile.", kTimeline, kInRun},
    Table{"studies", "A study that was carried out on one machine.", kStudies},
    Table{"study_items", "The pieces of work of a study, those that were left out among them.",
          kStudyItems, "study, key"},
    Table{"ceilings", "What the hardware was measured to do at most.", kCeilings,
          "environment, device, number"},
};

// "run, number" with every name quoted.
std::string quoted(std::string_view names) {
  std::string text = "\"";
  for (const char c : names) {
    if (c == ',') text += "\", \"";
    if (c != ',' && c != ' ') text += c;
  }
  return text + '"';
}

std::string names_markdown(std::string_view title, std::span<const RegisteredName> names) {
  std::string text = fmt::format("\n### {}\n\n| name | unit | meaning |\n|---|---|---|\n", title);
  for (const RegisteredName& name : names) {
    text += fmt::format("| `{}` | {} | {} |\n", name.name, name.unit, name.meaning);
  }
  return text;
}

}  // namespace

std::span<const Table> tables() { return kTables; }

const Table& table(std::string_view name) {
  const auto found = std::find_if(kTables.begin(), kTables.end(),
                                  [&](const Table& each) { return each.name == name; });
  ensure(found != kTables.end(), "no table '{}' is registered", name);
  return *found;
}

std::string_view sql_name(ColumnType type) {
  switch (type) {
    case integer:
      return "INTEGER";
    case real:
      return "REAL";
    case text:
      return "TEXT";
  }
  return {};
}

std::string create_sql(const Table& table) {
  std::string lines;
  for (const Column& column : table.columns) {
    lines +=
        fmt::format("{}  \"{}\" {}{}{}", lines.empty() ? "" : ",\n", column.name,
                    sql_name(column.type), column.constraint.empty() ? "" : " ", column.constraint);
  }
  if (table.key.empty()) return fmt::format("CREATE TABLE \"{}\" (\n{}\n)", table.name, lines);
  // Rows lie in the order of their key: those of one run together, without a second index.
  return fmt::format("CREATE TABLE \"{}\" (\n{},\n  PRIMARY KEY ({})\n) WITHOUT ROWID", table.name,
                     lines, quoted(table.key));
}

const RegisteredName* find_name(std::span<const RegisteredName> names, std::string_view name) {
  const auto found = std::find_if(names.begin(), names.end(),
                                  [&](const RegisteredName& each) { return each.name == name; });
  return found == names.end() ? nullptr : &*found;
}

std::string registry_markdown() {
  std::string text;
  for (const Table& each : kTables) {
    text += fmt::format("### {}\n{}\n\n| column | type | unit | meaning |\n|---|---|---|---|\n",
                        each.name, each.meaning);
    for (const Column& column : each.columns) {
      text += fmt::format("| `{}` | {} | {} | {} |\n", column.name, sql_name(column.type),
                          column.unit, column.meaning);
    }
    text += '\n';
  }
  text.pop_back();
  return text + names_markdown("Numbers of a run", number_names()) +
         names_markdown("Notes of a run", note_names()) + names_markdown("Sensors", sensor_names());
}

}  // namespace ridgeline
