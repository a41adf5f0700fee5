#include "report/run_fields.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/error.h"
#include "base/text.h"

namespace ridgeline::report {
namespace {

// What an executor's name tells.
constexpr std::array<std::string_view, 8> kExecutor = {
    "backend", "device",        "precision", "modes",
    "ranks",   "deterministic", "recompute", "disabled_passes"};

// What captions leave out although all runs share it: it comes with the command or with the data.
constexpr std::array<std::string_view, 5> kQuiet = {"command", "loader", "workers", "test_samples",
                                                    "normalisation"};

RunField of_identity(const IdentityField& field) {
  return {.name = field.name,
          .label = field.label,
          .meaning = field.meaning,
          .number = field.is_number,
          .scope = field.scope,
          .text = [&field](const Data&, const RunView& run) { return field.text(run.run); },
          .phrase = [&field](const Data&, const RunView& run) { return field.phrase(run.run); },
          .value = [&field](const RunView& run) { return field.value(run.run); }};
}

std::string command_text(const Data&, const RunView& run) {
  return run.run.command == "train" ? "training" : run.run.command;
}

// A bench, which runs the same step again and again, needs no mention.
std::string command_phrase(const Data&, const RunView& run) {
  const std::string& command = run.run.command;
  return command == "bench" ? std::string() : command == "train" ? "whole training" : command;
}

std::string machine_name(const Data& data, const RunView& run) { return data.machine_of(run).name; }

std::string executor_name(const Data&, const RunView& run) { return run.executor(); }

std::vector<RunField> all_fields() {
  std::vector<RunField> fields;
  for (const IdentityField& field : identity_fields()) {
    if (!has(kExecutor, field.name)) fields.push_back(of_identity(field));
  }
  // The network before everything else.
  const auto kind = std::ranges::find(fields, "kind", &RunField::name);
  std::rotate(kind, kind + 1, kind + 3);
  // Threads and workers stand behind the executor that has them.
  const auto threads = std::ranges::find(fields, "threads", &RunField::name);
  const std::array<RunField, 3> measured = {
      RunField{.name = "command",
               .label = "measured by",
               .meaning = "bench repeats one step, a training has its loader and its data",
               .text = command_text,
               .phrase = command_phrase},
      RunField{.name = "machine",
               .label = "machine",
               .meaning = "Where it was measured",
               .text = machine_name,
               .phrase = [](const Data& data,
                            const RunView& run) { return "on " + machine_name(data, run); }},
      RunField{.name = "executor",
               .label = "executor",
               .meaning = "Who computed: backend, device, precision, options",
               .text = executor_name,
               .phrase = executor_name}};
  fields.insert(threads, measured.begin(), measured.end());
  return fields;
}

// Runs among which a difference in the field is told.
std::string context_of(const Data& data, const RunField& field, const RunView& run) {
  const Work& work = run.run.work;
  if (field.scope == Scope::network) {
    return fmt::format("{}\n{}\n{}", work.model, work.kind, run.run.command);
  }
  if (field.scope == Scope::machine) {
    return fmt::format("{}\n{}\n{}", machine_name(data, run), run.run.executor.device,
                       run.run.command);
  }
  return {};
}

// The name of the executor without what is told otherwise.
std::string executor_without(const RunView& run, const FieldNames& shown) {
  RunView copy;
  copy.run.work.precision = run.run.work.precision;
  copy.run.executor = run.run.executor;
  for (const std::string_view part : kExecutor) {
    if (has(shown, part)) identity_field(part).clear(copy.run);
  }
  return copy.executor();
}

}  // namespace

std::span<const RunField> run_fields() {
  static const std::vector<RunField> fields = all_fields();
  return fields;
}

const RunField& run_field(std::string_view name) {
  static const std::vector<RunField> parts = [] {
    std::vector<RunField> made;
    for (const std::string_view part : kExecutor) made.push_back(of_identity(identity_field(part)));
    return made;
  }();
  for (const std::span<const RunField> fields : {run_fields(), std::span<const RunField>(parts)}) {
    for (const RunField& field : fields) {
      if (field.name == name) return field;
    }
  }
  fail("runs have no field named {}", name);
}

const FieldNames& work_fields() {
  static const FieldNames names = [] {
    FieldNames made;
    for (const IdentityField& field : identity_fields()) {
      if (field.of_work && !has(kExecutor, field.name)) made.push_back(field.name);
    }
    return made;
  }();
  return names;
}

const FieldNames& executor_fields() {
  static const FieldNames names = fields_without(work_fields());
  return names;
}

FieldNames fields_without(const FieldNames& names) {
  FieldNames others;
  for (const RunField& field : run_fields()) {
    if (!has(names, field.name)) others.push_back(field.name);
  }
  return others;
}

std::vector<const RunField*> differing_fields(const Data& data, const Runs& runs) {
  std::vector<const RunField*> differing;
  for (const RunField& field : run_fields()) {
    std::map<std::string, std::string> first;  // of each context
    const bool differs = std::ranges::any_of(runs, [&](const RunView* run) {
      const std::string text = field.text(data, *run);
      return first.try_emplace(context_of(data, field, *run), text).first->second != text;
    });
    if (differs) differing.push_back(&field);
  }
  return differing;
}

std::string run_key(const RunView& run, const FieldNames& except) {
  FieldNames names;
  for (const std::string_view name : except) {
    if (find_identity_field(name) != nullptr) names.push_back(name);
    if (name != "executor") continue;
    std::ranges::copy_if(kExecutor, std::back_inserter(names),
                         [](std::string_view part) { return !identity_field(part).of_work; });
  }
  std::string key = identity_key(run.run, names);
  if (!has(except, "command")) key += "\n" + run.run.command;
  if (!has(except, "machine")) key += fmt::format("\n{}", run.machine);
  return key;
}

std::vector<Runs> grouped(const Runs& runs, const FieldNames& except) {
  std::map<std::string, std::size_t> places;
  std::vector<Runs> groups;
  for (const RunView* run : runs) {
    const auto [place, fresh] = places.try_emplace(run_key(*run, except), groups.size());
    if (fresh) groups.emplace_back();
    groups[place->second].push_back(run);
  }
  return groups;
}

std::string common_text(const Data& data, const Runs& runs, const FieldNames& told) {
  std::vector<std::string> common;
  for (const RunField& field : run_fields()) {
    if (runs.empty() || has(told, field.name) || has(kQuiet, field.name)) continue;
    std::string phrase = field.phrase(data, *runs[0]);
    const bool shared = std::ranges::all_of(
        runs, [&](const RunView* run) { return field.phrase(data, *run) == phrase; });
    if (shared && !phrase.empty()) common.push_back(std::move(phrase));
  }
  return common.empty() ? std::string() : fmt::format(" All: {}.", joined(common, "; "));
}

std::string network_name(const RunView& run) {
  const Work& work = run.run.work;
  const std::string settings = settings_text(work);
  return settings.empty() ? work.model : fmt::format("{} ({})", work.model, settings);
}

std::optional<double> number_of(const RunView& run, const std::string& name) {
  const auto found = run.run.numbers.find(name);
  return found == run.run.numbers.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> flops_of_sample(const RunView& run) {
  const auto flops =
      number_of(run, run.run.work.kind == "inference" ? "forward_flops" : "training_flops");
  if (!flops || run.run.work.batch < 1) return std::nullopt;
  return *flops / static_cast<double>(run.run.work.batch);
}

Names::Names(const Data& data, const Runs& runs, FieldNames shown, FieldNames always)
    : data_(data), shown_(std::move(shown)) {
  for (const RunField& field : run_fields()) {
    if (has(shown_, field.name)) continue;
    std::map<std::string, std::set<std::string>> phrases;  // by context
    for (const RunView* run : runs) {
      phrases[context_of(data, field, *run)].insert(phrase(field, *run));
    }
    for (const auto& [context, different] : phrases) {
      if (has(always, field.name) || different.size() > 1) told_.emplace(&field, context);
    }
  }
  always.insert(always.end(), shown_.begin(), shown_.end());
  common_ = common_text(data, runs, always);
}

std::string Names::phrase(const RunField& field, const RunView& run) const {
  return field.name == "executor" ? executor_without(run, shown_) : field.phrase(data_, run);
}

std::string Names::of(const RunView& run) const {
  std::vector<std::string> words;
  const auto add = [&](const RunField& field) {
    if (!told_.contains({&field, context_of(data_, field, run)})) return;
    std::string text = phrase(field, run);
    if (!text.empty()) words.push_back(std::move(text));
  };
  // The network and who computes it come first.
  const RunField &model = run_field("model"), &executor = run_field("executor");
  add(model);
  add(executor);
  for (const RunField& field : run_fields()) {
    if (&field != &model && &field != &executor) add(field);
  }
  return joined(words, ", ");
}

}  // namespace ridgeline::report
