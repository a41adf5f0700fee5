#include "report/exhibits/sweep.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "base/error.h"
#include "base/parse.h"
#include "base/text.h"

namespace ridgeline::report {
namespace {

constexpr std::array<std::string_view, 4> kFirst = {"batch", "precision", "learning_rate",
                                                    "optimizer"};
// Differences that are no sweep: work of another kind, networks, and who computes.
constexpr std::array<std::string_view, 6> kNoAxes = {"kind",    "model",  "settings",
                                                     "backend", "device", "modes"};

SweepAxis axis_of(std::string_view field) {
  FieldNames along;
  if (field == "optimizer") along = {"momentum", "nesterov", "weight_decay", "learning_rate"};
  if (field == "schedule") along = {"schedule_step", "schedule_gamma"};
  if (field == "model") along = {"settings"};
  return {std::string(identity_field(field).label), field, "", std::move(along)};
}

std::vector<SweepAxis> axes_of(const Runs& runs) {
  std::vector<SweepAxis> axes;
  for (const std::string_view field : kFirst) axes.push_back(axis_of(field));
  std::set<std::string> options;
  for (const RunView* run : runs) {
    for (const auto& [name, value] : run->run.work.settings) options.insert(name);
  }
  for (const std::string& option : options) axes.push_back({option, "settings", option, {}});
  for (const IdentityField& field : identity_fields()) {
    if (!has(kFirst, field.name) && !has(kNoAxes, field.name)) axes.push_back(axis_of(field.name));
  }
  return axes;
}

// What decides whether two runs differ along the axis.
std::string value_of(const SweepAxis& axis, const RunView& run) {
  if (axis.option.empty()) return identity_field(axis.field).text(run.run);
  const auto found = run.run.work.settings.find(axis.option);
  return found == run.run.work.settings.end() ? std::string() : found->second;
}

std::set<std::string> distinct(const SweepAxis& axis, const Runs& runs) {
  std::set<std::string> values;
  for (const RunView* run : runs) values.insert(value_of(axis, *run));
  return values;
}

// Equal for runs that are equal in everything but the axis.
std::string key_of(const SweepAxis& axis, const RunView& run) {
  FieldNames except = axis.fields();
  // A full batch is all samples.
  if (axis.field == "data_samples" && run.run.work.full_batch) except.push_back("batch");
  std::string key = run_key(run, except);
  for (const auto& [name, value] : run.run.work.settings) {
    if (!axis.option.empty() && name != axis.option) key += fmt::format("\n{}={}", name, value);
  }
  return key;
}

// Of a sweep over optimizers: each with the learning rate that most runs of the same command have,
// where it was run with that one.
void keep_usual_rate(Runs& runs, const Runs& of_all) {
  std::map<double, int> counts;
  for (const RunView* run : of_all) {
    const std::optional<double>& rate = run->run.work.learning_rate;
    if (rate && run->run.command == runs[0]->run.command) ++counts[*rate];
  }
  if (counts.empty()) return;
  const double usual =
      std::ranges::max_element(counts, [](auto& a, auto& b) { return a.second < b.second; })->first;
  std::set<std::string> with_usual;
  for (const RunView* run : runs) {
    if (run->run.work.learning_rate == usual) with_usual.insert(run->run.work.optimizer);
  }
  std::erase_if(runs, [&](const RunView* run) {
    return run->run.work.learning_rate != usual && with_usual.contains(run->run.work.optimizer);
  });
}

Sweep sweep_along(const SweepAxis& axis, const Runs& runs) {
  Sweep sweep{axis};
  std::map<std::string, std::size_t> places;
  for (const RunView* run : runs) {
    if (axis.text(*run).empty()) continue;
    const auto [place, fresh] = places.try_emplace(key_of(axis, *run), sweep.series.size());
    if (fresh) sweep.series.emplace_back();
    sweep.series[place->second].push_back(run);
  }
  if (axis.field == "optimizer") {
    for (Runs& series : sweep.series) keep_usual_rate(series, runs);
  }
  std::erase_if(sweep.series,
                [&](const Runs& series) { return distinct(axis, series).size() < 2; });
  const Runs all = flat(sweep.series);
  sweep.numbers =
      std::ranges::all_of(all, [&](const RunView* run) { return axis.number(*run).has_value(); });
  if (!sweep.numbers) return sweep;
  for (Runs& series : sweep.series) {
    std::ranges::stable_sort(series, [&](const RunView* a, const RunView* b) {
      return *axis.number(*a) < *axis.number(*b);
    });
  }
  return sweep;
}

}  // namespace

std::string SweepAxis::text(const RunView& run) const {
  if (!option.empty()) return value_of(*this, run);
  const IdentityField& own = identity_field(field);
  if (own.is_number) {
    const std::optional<double> value = own.value(run.run);
    return value ? fmt::format("{:.10g}", *value) : std::string();
  }
  std::vector<std::string> words = {own.text(run.run)};
  if (words[0].empty()) words[0] = "no";
  for (const std::string_view other : along) {
    std::string phrase = identity_field(other).phrase(run.run);
    if (!phrase.empty()) words.push_back(std::move(phrase));
  }
  return joined(words, ", ");
}

std::optional<double> SweepAxis::number(const RunView& run) const {
  if (option.empty()) return identity_field(field).value(run.run);
  return number_in<double>(value_of(*this, run));
}

FieldNames SweepAxis::fields() const {
  FieldNames names = along;
  names.push_back(field);
  return names;
}

std::string Sweep::other_options(const RunView& run) const {
  const Runs runs = flat(series);
  std::vector<std::string> words;
  for (const auto& [name, value] : run.run.work.settings) {
    if (name == axis.option || distinct({name, "settings", name, {}}, runs).size() < 2) continue;
    words.push_back(fmt::format("{}={}", name, value));
  }
  return joined(words, ", ");
}

std::vector<Sweep> sweeps_of(const Runs& runs) {
  std::vector<Sweep> sweeps;
  const auto add = [&](const SweepAxis& axis) {
    // Most fields are the same in all runs.
    if (distinct(axis, runs).size() < 2) return;
    Sweep sweep = sweep_along(axis, runs);
    if (!sweep.series.empty()) sweeps.push_back(std::move(sweep));
  };
  for (const SweepAxis& axis : axes_of(runs)) add(axis);
  if (sweeps.empty()) add(axis_of("model"));
  return sweeps;
}

}  // namespace ridgeline::report
