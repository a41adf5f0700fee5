#include "study/read_part.h"

#include <algorithm>
#include <array>

#include "backends/registry.h"
#include "base/parse.h"
#include "base/precision.h"
#include "base/suggest.h"
#include "base/text.h"
#include "devices/device.h"
#include "lab/options.h"
#include "models/model.h"
#include "onnx/network.h"
#include "peers/peer_name.h"
#include "plan/plan.h"
#include "study/datasets.h"
#include "study/executors.h"

namespace ridgeline::study {
namespace {

// One of some names; the message tells the others.
void check_name(const char* what, const std::string& name,
                const std::vector<std::string_view>& known) {
  if (std::find(known.begin(), known.end(), name) != known.end()) return;
  bad_input("unknown {} '{}'{}{} Known: {}", what, name, did_you_mean(name, known),
            nearest(name, known) ? "" : ".", joined(known, ", "));
}

void check_model(const std::string& name) { (void)onnx::named_config(name); }

void check_device(const std::string& name) {
  for (const std::string_view kind : {"cuda:", "opencl:"}) {
    if (name.starts_with(kind) && name.size() > kind.size() &&
        name.find_first_not_of("0123456789", kind.size()) == std::string::npos) {
      return;
    }
  }
  check_name("device", name, {"cpu", "cuda", "opencl", "mps", "best"});
}

void check_backend(const std::string& text) {
  const auto& [name, device] = split_backend(text);
  if (text.find('@') != std::string::npos) {
    check_device(device);
    const std::string_view kind = device_kind_of(name);
    if (kind != "any" && kind != device_kind(device)) {
      bad_input("'{}': {} runs on {}", text, name, kind);
    }
  }
  if (is_peer(name)) {
    (void)parse_peer(name);
    return;
  }
  std::vector<std::string_view> known = backend_names();
  for (const PeerInfo& peer : known_peers()) known.push_back(peer.name);
  check_name("backend", name, known);
}

void check_pass(const std::string& name) {
  std::vector<std::string_view> known;
  for (const PassInfo& pass : kPasses) known.push_back(pass.name);
  check_name("pass", name, known);
}

Precision precision_of(const std::string& name) {
  check_name("precision", name, {kPrecisionNames.begin(), kPrecisionNames.end()});
  const auto found = std::find(kPrecisionNames.begin(), kPrecisionNames.end(), name);
  return static_cast<Precision>(found - kPrecisionNames.begin());
}

void check_image(const std::string& text) { (void)parse_image(text, 1); }

std::int64_t batch_of(const std::string& text) {
  if (text == "full") return kFullBatch;
  const std::int64_t number = number_in<std::int64_t>(text).value_or(0);
  if (number < 1) {
    bad_input("batch '{}': must be a whole number from 1, or \"full\": all of the data", text);
  }
  return number;
}

OptimizerChoice optimizer_of(const std::string& text) {
  const std::size_t space = text.find(' ');
  OptimizerChoice choice{text.substr(0, space), std::nullopt};
  check_name("optimizer", choice.name, {"sgd", "adam", "adamw"});
  if (space == std::string::npos) return choice;
  const std::string rest = text.substr(space + 1);
  const double rate =
      rest.starts_with("lr=") ? number_in<double>(rest.substr(3)).value_or(0.0) : 0.0;
  if (!(rate > 0.0)) {
    bad_input("optimizer '{}': expected a name, or a name and its rate, such as \"adam lr=0.001\"",
              text);
  }
  choice.learning_rate = rate;
  return choice;
}

PartCommand command_of(TomlEntry& entry) {
  const std::string name = entry.required_text("command");
  constexpr std::array kCommands = {PartCommand::bench, PartCommand::inference, PartCommand::train,
                                    PartCommand::profile, PartCommand::ceilings};
  std::vector<std::string_view> known;
  for (const PartCommand command : kCommands) {
    if (name_of(command) == name) return command;
    known.push_back(name_of(command));
  }
  entry.refuse_at("command",
                  fmt::format("unknown command '{}'{}{} Known: {}", name, did_you_mean(name, known),
                              nearest(name, known) ? "" : ".", joined(known, ", ")));
}

// Every model must have every setting, and every setting must be named once.
void check_settings(const Part& part, const TomlEntry& entry) {
  for (const SettingAxis& axis : part.settings) {
    for (const std::string& name : part.models) {
      std::vector<std::string_view> known;
      for (const ModelOption& option : options_of(onnx::named_config(name))) {
        known.push_back(option.name);
      }
      if (std::find(known.begin(), known.end(), axis.name) != known.end()) continue;
      entry.refuse_at("settings",
                      fmt::format("{} has no setting '{}'{} Its own: {}", name, axis.name,
                                  nearest(axis.name, known) ? did_you_mean(axis.name, known) : ".",
                                  known.empty() ? "none" : joined(known, ", ")));
    }
  }
}

// Axes of this part that have values.
std::vector<std::string_view> axis_names(const Part& part) {
  std::vector<std::string_view> names;
  const auto add = [&](std::string_view name, std::size_t values) {
    if (values > 0) names.push_back(name);
  };
  add("batches", part.batches.size());
  add("precisions", part.precisions.size());
  add("images", part.images.size());
  add("samples", part.samples.size());
  add("optimizers", part.optimizers.size());
  add("learning_rates", part.learning_rates.size());
  for (const SettingAxis& axis : part.settings) names.push_back(axis.name);
  return names;
}

void check_together(const Part& part, const TomlEntry& entry) {
  if (part.models.empty()) entry.refuse("'models' is missing: which networks?");
  for (const std::string& axis : part.one_at_a_time) {
    const std::vector<std::string_view> axes = axis_names(part);
    if (std::find(axes.begin(), axes.end(), axis) != axes.end()) continue;
    entry.refuse_at("one_at_a_time", fmt::format("'{}' is no axis with values in this part{} It "
                                                 "has: {}",
                                                 axis, did_you_mean(axis, axes),
                                                 axes.empty() ? "none" : joined(axes, ", ")));
  }
  const bool own_only = part.command == PartCommand::train || part.command == PartCommand::profile;
  for (const std::string& backend : part.backends) {
    if (own_only && is_peer(split_backend(backend).backend)) {
      entry.refuse_at("backends",
                      fmt::format("'{}' is a peer: only bench and inference measure peers, not {}",
                                  backend, name_of(part.command)));
    }
    if (devices_of(backend, part.devices).empty()) {
      entry.refuse_at("devices", fmt::format("'{}' runs on {}, and no such device is named here",
                                             backend, device_kind_of(backend)));
    }
  }
  const bool full =
      std::find(part.batches.begin(), part.batches.end(), kFullBatch) != part.batches.end();
  if (part.command == PartCommand::train && full) {
    entry.refuse_at("batches", "for train, all of the data as one batch is full_batch = true");
  }
  const bool steps_only = part.command != PartCommand::train && !part.loader && !full;
  if (!part.samples.empty() && steps_only) {
    entry.refuse_at("samples",
                    "has no effect on a single batch; it needs loader = true or "
                    "batches = [\"full\"]");
  }
  if (full && part.samples.empty() && part.data.empty()) {
    entry.refuse_at("batches", "\"full\" needs 'samples' or 'data': how many are there?");
  }
  if (part.weights_required && part.weights.empty()) {
    entry.refuse_at("weights_required", "there are no 'weights' that it could require");
  }
  if (!part.substitute.empty() && part.data.empty()) {
    entry.refuse_at("substitute", "there is no 'data' that it could take the place of");
  }
}

// A reader of one value, as a check: what it throws gets the line of the file.
template <typename Value>
TomlEntry::Check checking(Value (*read)(const std::string&)) {
  return [read](const std::string& text) { (void)read(text); };
}

template <typename Value>
std::vector<Value> read_values(const std::vector<std::string>& texts,
                               Value (*read)(const std::string&)) {
  std::vector<Value> values;
  for (const std::string& text : texts) values.push_back(read(text));
  return values;
}

void read_axes(Part& part, TomlEntry& entry) {
  part.models = entry.texts("models", check_model);
  part.backends = entry.texts("backends", check_backend);
  part.devices = entry.texts("devices", check_device);
  part.precisions = read_values(entry.texts("precisions", checking(precision_of)), precision_of);
  part.images = entry.words("images", check_image);
  if (!(part.command == PartCommand::train && part.full_batch)) {
    part.batches = read_values(entry.words("batches", checking(batch_of)), batch_of);
  }
  if (part.command != PartCommand::profile) part.samples = entry.wholes("samples", 1);
  for (auto& [name, values] : entry.words_by_name("settings")) {
    part.settings.push_back({std::move(name), std::move(values)});
  }
  part.threads = entry.wholes("threads", 1);
  part.one_at_a_time = entry.texts("one_at_a_time");
  if (part.command == PartCommand::inference) return;
  part.optimizers = read_values(entry.texts("optimizers", checking(optimizer_of)), optimizer_of);
  part.learning_rates = entry.numbers("learning_rates");
}

void read_ranks(Part& part, TomlEntry& entry) {
  part.ranks = entry.wholes("ranks", 1);
  if (part.ranks.empty()) return;
  const auto one_of = [&](const char* key, const std::vector<std::string_view>& known) {
    std::string text = entry.text(key);
    if (text.empty() || std::find(known.begin(), known.end(), text) != known.end()) return text;
    entry.refuse_at(key, fmt::format("'{}': must be one of {}", text, joined(known, ", ")));
  };
  part.scaling = one_of("scaling", {"strong", "weak"});
  part.reduce = one_of("reduce", {"fp32", "bf16", "fp16"});
  part.unconnected = entry.flag("unconnected");
}

// What the command itself takes.
void read_options(Part& part, TomlEntry& entry) {
  part.data = entry.texts("data", check_data_name);
  part.substitute = entry.texts("substitute", check_data_name);
  part.normalize = entry.text("normalize");
  part.init = entry.text("init");
  part.classes = entry.whole("classes", 2);
  const bool steps = part.command != PartCommand::train;
  part.iterations =
      steps || part.full_batch ? entry.whole("iterations", 1) : std::optional<std::int64_t>();
  if (part.command == PartCommand::bench || part.command == PartCommand::inference) {
    part.warmup = entry.whole("warmup", 0);
    part.max_seconds = entry.number("max_seconds", false);
  }
  if (part.command == PartCommand::inference) return;
  part.momentum = entry.number("momentum", true);
  part.weight_decay = entry.number("weight_decay", true);
  part.freeze = entry.texts("freeze");
  part.no_pass = entry.texts("no_pass", check_pass);
  part.workers = entry.whole("workers", 1);
  if (part.command == PartCommand::bench) read_ranks(part, entry);
  if (steps) {
    part.loader = entry.flag("loader");
    return;
  }
  if (!part.full_batch) part.epochs = entry.whole("epochs", 1);
  part.eval_every = entry.whole("eval_every", 1);
  part.validation = entry.text("validation");
  part.augment = entry.text("augment");
  part.schedule = entry.text("schedule");
  part.target_accuracy = entry.text("target_accuracy");
  part.weights = entry.text("weights");
  part.weights_required = entry.flag("weights_required");
}

}  // namespace

std::optional<Part> read_part(TomlEntry& entry, Scale scale) {
  Part part;
  part.id = entry.required_text("id");
  if (part.id.find_first_of("/ \t\n,") != std::string::npos) {
    entry.refuse_at("id", fmt::format("'{}': must be one word without '/' and ','", part.id));
  }
  part.title = entry.text("title");
  part.command = command_of(entry);
  const std::vector<std::string> scales =
      entry.texts("scales", [](const std::string& name) { (void)parse_scale(name); });
  if (part.command == PartCommand::ceilings) {
    part.devices = entry.texts("devices", check_device);
    part.ranks = entry.wholes("ranks", 2);
  } else {
    if (part.command == PartCommand::train) part.full_batch = entry.flag("full_batch");
    read_axes(part, entry);
    read_options(part, entry);
  }
  entry.finish();
  if (part.command != PartCommand::ceilings) {
    check_settings(part, entry);
    check_together(part, entry);
  }
  const bool wanted =
      scales.empty() || std::find(scales.begin(), scales.end(), name_of(scale)) != scales.end();
  return wanted ? std::optional<Part>(std::move(part)) : std::nullopt;
}

}  // namespace ridgeline::study
