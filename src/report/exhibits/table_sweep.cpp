// One axis at a time: runs that are equal in all but one thing.

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "models/model.h"
#include "report/exhibits/makers.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

constexpr const char* kLearningRate = "learning rate";

// What may be swept, by name, and the run's value of it; options of the network under their own.
using Values = std::map<std::string, std::string>;

Values values_of(const RunView& run) {
  const Work& work = run.run.work;
  // One batch of all samples, by training or by `bench --batch full`.
  const bool full = work.variant.find("full batch") != std::string::npos ||
                    run.run.arguments.find("--batch full") != std::string::npos;
  Values values = {{"network", work.model},
                   {"input", work.image},
                   {"precision", work.precision},
                   {"optimizer", work.optimizer},
                   {"data", work.data},
                   {"classes", fmt::format("{}", work.classes)},
                   {"normalisation", work.normalisation},
                   {"variant", work.variant}};
  if (run.learning_rate) values[kLearningRate] = fmt::format("{:.10g}", *run.learning_rate);
  // With full batches the batch is the data set; without a data set, the data set is the batch.
  if (!full) values["batch"] = fmt::format("{}", work.batch);
  if (full || work.data_samples != work.batch) {
    values["samples"] = fmt::format("{}", work.data_samples);
  }
  std::string_view rest = work.settings;
  std::string name;
  while (!rest.empty()) {
    const std::string part(rest.substr(0, rest.find(',')));
    rest.remove_prefix(std::min(rest.size(), part.size() + 1));
    const std::size_t equals = part.find('=');
    if (equals == std::string::npos) {
      if (!name.empty()) values[name] += "," + part;
      continue;
    }
    name = "option " + part.substr(0, equals);
    values[name] = part.substr(equals + 1);
  }
  return values;
}

// Of an option of the network that a run did not set.
std::string default_of(const std::string& model, const std::string& option) {
  for (const ModelInfo& info : all_models()) {
    if (info.name != model) continue;
    for (const ModelOption& known : info.options) {
      if (known.name == option) return std::string(known.fallback);
    }
  }
  return "default";
}

std::string value_of(const RunView& run, const std::string& axis) {
  const Values values = values_of(run);
  const auto found = values.find(axis);
  if (found != values.end()) return found->second;
  return axis.starts_with("option ") ? default_of(run.run.work.model, axis.substr(7)) : "";
}

// Equal in everything but the axis. The usual learning rate belongs to the optimizer: a sweep over
// optimizers may change it with them.
bool same_but(const RunView& a, const RunView& b, const std::string& axis) {
  if (!same_place(a, b) || a.run.command != b.run.command || a.run.work.kind != b.run.work.kind) {
    return false;
  }
  Values x = values_of(a), y = values_of(b);
  for (Values* values : {&x, &y}) {
    values->erase(axis);
    if (axis == "optimizer") values->erase(kLearningRate);
    // A batch that is all of the data changes both.
    if (axis == "batch") values->erase("samples");
  }
  if (axis == "batch" && a.run.work.data != "synthetic" &&
      a.run.work.data_samples != b.run.work.data_samples) {
    return false;
  }
  return x == y;
}

bool any_result(const RunView& run) { return run.rate.has_value() && !is_profile(run); }

std::set<std::string> distinct(const Runs& runs, const std::string& axis) {
  std::set<std::string> values;
  for (const RunView* run : runs) values.insert(value_of(*run, axis));
  values.erase("");
  return values;
}

// Of a sweep over optimizers: each with the learning rate that most runs of all have, where it was
// run with that one.
void keep_usual_rate(Runs& runs, const Runs& of_all) {
  std::map<std::string, int> counts;
  for (const RunView* run : of_all) {
    if (run->learning_rate) ++counts[value_of(*run, kLearningRate)];
  }
  if (counts.empty()) return;
  const auto usual =
      std::max_element(counts.begin(), counts.end(), [](const auto& a, const auto& b) {
        return a.second < b.second;
      })->first;
  const Runs all = runs;
  std::erase_if(runs, [&](const RunView* run) {
    if (value_of(*run, kLearningRate) == usual) return false;
    return std::any_of(all.begin(), all.end(), [&](const RunView* other) {
      return other->run.work.optimizer == run->run.work.optimizer &&
             value_of(*other, kLearningRate) == usual;
    });
  });
}

std::vector<Runs> sweeps_of(const Runs& runs, const std::string& axis) {
  std::vector<Runs> sweeps;
  for (const RunView* run : runs) {
    if (value_of(*run, axis).empty()) continue;
    const auto found = std::find_if(sweeps.begin(), sweeps.end(), [&](const Runs& sweep) {
      return same_but(*sweep.front(), *run, axis);
    });
    if (found == sweeps.end()) {
      sweeps.push_back({run});
    } else {
      found->push_back(run);
    }
  }
  if (axis == "optimizer") {
    for (Runs& sweep : sweeps) keep_usual_rate(sweep, runs);
  }
  std::erase_if(sweeps, [&](const Runs& sweep) { return distinct(sweep, axis).size() < 2; });
  for (Runs& sweep : sweeps) {
    std::stable_sort(sweep.begin(), sweep.end(), [&](const RunView* a, const RunView* b) {
      const std::string x = value_of(*a, axis), y = value_of(*b, axis);
      char *end_x = nullptr, *end_y = nullptr;
      const double number_x = std::strtod(x.c_str(), &end_x),
                   number_y = std::strtod(y.c_str(), &end_y);
      const bool numbers = *end_x == '\0' && *end_y == '\0';
      return numbers ? number_x < number_y : x < y;
    });
  }
  return sweeps;
}

bool is_number(const std::string& text) {
  char* end = nullptr;
  (void)std::strtod(text.c_str(), &end);
  return !text.empty() && *end == '\0';
}

std::optional<double> last_accuracy(const RunView& run) {
  std::optional<double> last;
  for (const EpochRecord& epoch : run.epochs) {
    if (epoch.test_accuracy) last = epoch.test_accuracy;
  }
  return last;
}

// The heads of a table along the axis: the axis has a column of its own.
Heads heads_along(const Data& data, const Runs& runs, const std::string& axis) {
  std::set<std::string> options;
  for (const RunView* run : runs) {
    for (const auto& [name, value] : values_of(*run)) {
      if (name != axis && name.starts_with("option ") && distinct(runs, name).size() > 1) {
        options.insert(name);
      }
    }
  }
  if (axis == "batch") return heads_of(data, runs, {"model", "machine", "executor"}, {"batch"});
  if (axis == "samples") {
    return heads_of(data, runs, {"model", "machine", "executor"}, {"batch", "data"});
  }
  if (axis == kLearningRate) {
    return heads_of(data, runs, {"model", "machine", "executor"}, {"learning_rate"});
  }
  if (axis == "optimizer") {
    return heads_of(data, runs, {"model", "machine", "executor"}, {"optimizer"});
  }
  if (axis == "input") return heads_of(data, runs, {"model", "machine", "executor"}, {"image"});
  if (axis == "network") return heads_of(data, runs, {"machine", "executor"}, {"model"});
  if (axis.starts_with("option ") && options.empty()) {
    return heads_of(data, runs, {"model", "machine", "executor"}, {"settings"});
  }
  return heads_of(data, runs, {"model", "machine", "executor"});
}

Table table_along(const ExhibitInput& input, const std::string& axis,
                  const std::vector<Runs>& sweeps) {
  Runs runs;
  for (const Runs& sweep : sweeps) runs.insert(runs.end(), sweep.begin(), sweep.end());
  const std::string name = axis.starts_with("option ") ? axis.substr(7) : axis;
  const Heads heads = heads_along(input.data, runs, axis);
  Table table = begin_table(input, name, "Sweep", heads);
  table.caption += fmt::format(
      " Rows of one executor that follow each other differ in the {} alone{}. Throughput is a "
      "median "
      "with its 95% interval ({}); its ratio is to the first row of the same executor.",
      name, axis == "optimizer" ? ", and in the learning rate that is usual for it" : "",
      samples_text(runs));
  const std::set<std::string> values = distinct(runs, axis);
  const bool numbers = std::all_of(values.begin(), values.end(), is_number);
  const bool trained = std::any_of(runs.begin(), runs.end(),
                                   [](const RunView* run) { return !run->epochs.empty(); });
  table.columns.push_back({name, "", numbers, "What is varied"});
  table.columns.push_back({"throughput", "img/s", true, "Samples a second, median and interval"});
  table.columns.push_back({"ratio", "x", true, "Throughput over that of the first value"});
  table.columns.push_back({"achieved", "GFLOP/s", true, "Algorithmic FLOPs over time"});
  if (trained) {
    table.columns.push_back({"final loss", "", true, "Mean training loss of the last epoch"});
    table.columns.push_back({"final Acc@1", "%", true, "Test accuracy after the last epoch"});
    table.columns.push_back({"max Acc@1", "%", true, "Highest test accuracy of all epochs"});
  }
  for (const Runs& sweep : sweeps) {
    for (const RunView* run : sweep) {
      std::vector<Cell> row = begin_row(input.data, heads, *run);
      const std::string value = value_of(*run, axis);
      Cell cell = words(value);
      if (numbers) {
        cell.value = std::stod(value);
        if (axis == "samples") cell.text = count_text(run->run.work.data_samples);
      }
      row.push_back(std::move(cell));
      row.push_back(rate_cell(input.data, table, *run));
      if (run == sweep.front()) {
        row.push_back(words("1"));
        row.back().value = 1.0;
      } else {
        row.push_back(ratio_cell(table, *run, *sweep.front()));
      }
      row.push_back(flops_cell(table, *run, 1e-9));
      if (trained) {
        const bool has = !run->epochs.empty();
        const std::string why = "not a training: nothing was learnt";
        const double loss = has ? run->epochs.back().train_loss : 0.0;
        row.push_back(!has                  ? missing(table, why)
                      : std::isfinite(loss) ? number(loss, {run->run.id})
                                            : missing(table, "the loss is not a number"));
        row.push_back(number_cell(table, last_accuracy(*run), 100.0, *run,
                                  has ? "the network was not tested" : why));
        if (last_accuracy(*run)) {
          mark_as(input.data, table, row.back(), *run, Marks::accuracy);
        }
        row.push_back(number_cell(table, number_of(*run, "best_test_accuracy"), 100.0, *run,
                                  has ? "the network was not tested" : why));
      }
      table.rows.push_back(std::move(row));
    }
  }
  return table;
}

}  // namespace

Tables make_sweep(const ExhibitInput& input) {
  const Runs runs = chosen(input.runs, any_result);
  // Axes that studies name first, then options of networks by name, then the rest.
  std::vector<std::string> axes = {"batch", "precision", kLearningRate, "optimizer"};
  std::set<std::string> options;
  for (const RunView* run : runs) {
    for (const auto& [name, value] : values_of(*run)) {
      if (name.starts_with("option ")) options.insert(name);
    }
  }
  axes.insert(axes.end(), options.begin(), options.end());
  for (const char* rest : {"samples", "input"}) axes.emplace_back(rest);
  Tables tables;
  for (const std::string& axis : axes) {
    const std::vector<Runs> sweeps = sweeps_of(runs, axis);
    if (!sweeps.empty()) tables.push_back(table_along(input, axis, sweeps));
  }
  // Several networks are no sweep, unless nothing else was varied.
  const std::vector<Runs> networks =
      tables.empty() ? sweeps_of(runs, "network") : std::vector<Runs>();
  if (!networks.empty()) tables.push_back(table_along(input, "network", networks));
  return tables;
}

}  // namespace ridgeline::report
