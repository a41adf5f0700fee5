#include "report/exhibits/run_table.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <set>
#include <tuple>

#include "base/error.h"
#include "base/text.h"
#include "lab/peers/peer_name.h"

namespace ridgeline::report {
namespace {

std::string whole(std::int64_t number) { return number == 0 ? "" : fmt::format("{}", number); }

std::string data_text(const Work& work) {
  if (work.data.empty()) return "";
  if (work.data_samples == work.batch || work.data_samples == 0) return work.data;
  return fmt::format("{}, {} samples", work.data, count_text(work.data_samples));
}

std::string command_text(const RunView& run) {
  if (run.run.command == "train") return "training";
  if (run.run.command == "profile") return "profile";
  return "bench";
}

std::string itself(const std::string& text) { return text; }

// In the order of the columns.
const std::vector<Field>& all_fields() {
  static const std::vector<Field> fields = {
      {"model",
       {.title = "network", .meaning = "Name of the network"},
       [](const Data&, const RunView& run) { return run.run.work.model; },
       itself},
      {"settings",
       {.title = "options", .meaning = "Options of the network"},
       [](const Data&, const RunView& run) { return run.run.work.settings; },
       itself},
      {"kind",
       {.title = "kind", .meaning = "Training steps or inference"},
       [](const Data&, const RunView& run) { return run.run.work.kind; },
       itself},
      {"image",
       {.title = "input", .meaning = "Channels x height x width of a sample"},
       [](const Data&, const RunView& run) { return run.run.work.image; },
       [](const std::string& text) { return "inputs of " + text; }},
      {"batch",
       {.title = "batch", .number = true, .meaning = "Samples of one iteration"},
       [](const Data&, const RunView& run) { return whole(run.run.work.batch); },
       [](const std::string& text) { return "batch " + text; }},
      {"classes",
       {.title = "classes", .number = true, .meaning = "Classes that the network tells apart"},
       [](const Data&, const RunView& run) { return whole(run.run.work.classes); },
       [](const std::string& text) { return text + " classes"; }},
      {"precision",
       {.title = "precision", .meaning = "Of the matrix products"},
       [](const Data&, const RunView& run) { return run.run.work.precision; },
       itself},
      {"optimizer",
       {.title = "optimizer", .meaning = "Rule of the parameters' update"},
       [](const Data&, const RunView& run) { return run.run.work.optimizer; },
       itself},
      {"learning_rate",
       {.title = "learning rate", .number = true, .meaning = "When training began"},
       [](const Data&, const RunView& run) {
         return run.learning_rate ? fmt::format("{:.6g}", *run.learning_rate) : std::string();
       },
       [](const std::string& text) { return "learning rate " + text; }},
      {"data",
       {.title = "data", .meaning = "Where the samples come from"},
       [](const Data&, const RunView& run) { return data_text(run.run.work); },
       [](const std::string& text) { return "data: " + text; }},
      {"normalisation",
       {.title = "normalisation", .meaning = "Of the inputs"},
       [](const Data&, const RunView& run) { return run.run.work.normalisation; },
       itself},
      {"variant",
       {.title = "variant", .meaning = "What else changes the work"},
       [](const Data&, const RunView& run) { return run.run.work.variant; },
       itself},
      {"command",
       {.title = "measured by",
        .meaning =
            "bench runs the same step again and again, training has its loader and its data"},
       [](const Data&, const RunView& run) { return command_text(run); },
       [](const std::string& text) { return "measured by " + text; }},
      {"machine",
       {.title = "machine", .meaning = "Where it was measured"},
       [](const Data& data, const RunView& run) { return data.machine_of(run).name; },
       [](const std::string& text) { return "on " + text; }},
      {"executor",
       {.title = "executor", .meaning = "Who computed: backend, device, precision, options"},
       [](const Data&, const RunView& run) { return run.executor(); },
       [](const std::string& text) { return "by " + text; }},
      {"threads",
       {.title = "threads", .number = true, .meaning = "Of the host"},
       [](const Data&, const RunView& run) { return whole(run.run.executor.threads); },
       [](const std::string& text) { return text + " threads"; }},
  };
  return fields;
}

bool names(std::initializer_list<std::string_view> list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

// Whether the runs differ in it. One that has none, such as a bench without a learning rate,
// differs from nobody; threads of different machines are no difference of theirs, nor are the
// classes of different networks.
bool differs(const Data& data, const Runs& runs, const Field& field) {
  std::map<std::string, std::set<std::string>> values;
  for (const RunView* run : runs) {
    const std::string text = field.text(data, *run);
    const std::string within = field.name == "threads"   ? data.machine_of(*run).name
                               : field.name == "classes" ? network_name(*run)
                                                         : std::string();
    // No settings, no variant: a value like another.
    const bool counts = !text.empty() || field.name == "settings" || field.name == "variant";
    if (counts) values[within].insert(text);
  }
  return std::any_of(values.begin(), values.end(),
                     [](const auto& entry) { return entry.second.size() > 1; });
}

// What all runs that have it have in common; empty: not one thing.
std::string common_text(const Data& data, const Runs& runs, const Field& field) {
  std::string common;
  for (const RunView* run : runs) {
    const std::string text = field.text(data, *run);
    if (!text.empty() && !common.empty() && text != common) return "";
    if (!text.empty()) common = text;
  }
  return common;
}

// FLOPs of a sample by network: peers of some stores do not tell theirs.
std::map<std::string, double> network_sizes(const Runs& runs) {
  std::map<std::string, double> sizes;
  for (const RunView* run : runs) {
    double& size = sizes[network_name(*run)];
    size = std::max(size, flops_of_sample(*run).value_or(0.0));
  }
  return sizes;
}

std::int64_t pixels_of(const std::string& image) {
  std::int64_t product = 1, number = 0;
  for (const char c : image + "x") {
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) {
      number = std::min<std::int64_t>(10 * number + (c - '0'), 1 << 20);
    } else {
      product = std::min<std::int64_t>(product * std::max<std::int64_t>(number, 1), 1LL << 40);
      number = 0;
    }
  }
  return product;
}

}  // namespace

std::optional<double> number_of(const RunView& run, const std::string& name) {
  const auto found = run.run.numbers.find(name);
  return found == run.run.numbers.end() ? std::nullopt : std::optional(found->second);
}

std::optional<double> flops_of_sample(const RunView& run) {
  const bool inference = is_inference(run);
  const auto flops = number_of(run, inference ? "forward_flops" : "training_flops");
  if (!flops || run.run.work.batch < 1) return std::nullopt;
  return *flops / static_cast<double>(run.run.work.batch);
}

std::string network_name(const RunView& run) {
  const Work& work = run.run.work;
  return work.settings.empty() ? work.model : fmt::format("{} ({})", work.model, work.settings);
}

std::string executor_name(const Data& data, const RunView& run) {
  if (data.machines().size() < 2) return run.executor();
  return fmt::format("{} ({})", run.executor(), data.machine_of(run).name);
}

bool is_peer(const RunView& run) { return ridgeline::is_peer(run.run.executor.backend); }
bool is_training(const RunView& run) { return run.run.command == "train"; }
bool is_profile(const RunView& run) { return run.run.command == "profile"; }
bool is_inference(const RunView& run) { return run.run.work.kind == "inference"; }
bool is_measured(const RunView& run) {
  return !is_training(run) && !is_profile(run) && !is_inference(run);
}

bool same_network(const RunView& a, const RunView& b) {
  const Work &x = a.run.work, &y = b.run.work;
  return x.kind == y.kind && x.model == y.model && x.settings == y.settings && x.batch == y.batch &&
         x.image == y.image && x.classes == y.classes && x.precision == y.precision;
}

Heads heads_of(const Data& data, const Runs& runs, std::initializer_list<std::string_view> always,
               std::initializer_list<std::string_view> never) {
  Heads heads;
  std::vector<std::string> shared;
  // An executor's name tells the precision.
  const auto told = [&](const Field& field) {
    return names(never, field.name) || (field.name == "precision" && !names(never, "executor"));
  };
  for (const Field& field : all_fields()) {
    const bool differing = differs(data, runs, field);
    if (names(always, field.name) || (differing && !told(field))) {
      heads.fields.push_back(&field);
    } else if (!differing && !names(never, field.name) && field.name != "kind") {
      const std::string text = common_text(data, runs, field);
      if (!text.empty()) shared.push_back(field.phrase(text));
    }
  }
  if (!shared.empty()) heads.shared = "All: " + joined(shared, "; ") + ".";
  return heads;
}

std::string name_of(const Data& data, const Heads& heads, const RunView& run) {
  std::vector<std::string> words;
  for (const Field* field : heads.fields) {
    const std::string text = field->text(data, run);
    if (!text.empty()) words.push_back(field->column.number ? field->phrase(text) : text);
  }
  return joined(words, ", ");
}

void put_last(Heads& heads, std::string_view name) {
  std::stable_partition(heads.fields.begin(), heads.fields.end(),
                        [&](const Field* field) { return field->name != name; });
}

std::string joined_id(const std::string& id, const std::string& suffix) {
  std::string made = id;
  if (!suffix.empty()) made += '-';
  for (const char c : suffix) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain) {
      made += c;
    } else if (!made.ends_with('-')) {
      made += '-';
    }
  }
  while (made.size() > id.size() && made.ends_with('-')) made.pop_back();
  return made;
}

Table begin_table(const ExhibitInput& input, const std::string& part, const std::string& title,
                  const Heads& heads) {
  Table table;
  table.id = joined_id(input.id, part);
  table.title = input.title.empty() ? title : input.title;
  if (!part.empty()) table.title += ": " + part;
  table.caption = heads.shared;
  for (const Field* field : heads.fields) table.columns.push_back(field->column);
  return table;
}

std::vector<Cell> begin_row(const Data& data, const Heads& heads, const RunView& run) {
  std::vector<Cell> cells;
  for (const Field* field : heads.fields) {
    const std::string text = field->text(data, run);
    // A network without options, a bench without a learning rate: nothing is missing.
    Cell cell = words(text.empty() ? "–" : text);
    if (field->column.number && !text.empty()) cell.value = std::stod(text);
    cell.runs.push_back(run.run.id);
    cells.push_back(std::move(cell));
  }
  return cells;
}

Runs chosen(const Runs& runs, bool (*fits)(const RunView& run)) {
  Runs found;
  std::copy_if(runs.begin(), runs.end(), std::back_inserter(found),
               [&](const RunView* run) { return fits(*run); });
  found = newest_of(found);
  const std::map<std::string, double> sizes = network_sizes(found);
  const auto place = [&](const RunView& run) {
    const Work& work = run.run.work;
    const std::string network = network_name(run);
    return std::tuple(sizes.at(network), network, pixels_of(work.image), work.batch, work.kind,
                      run.run.executor.device != "cpu", is_peer(run), run.machine,
                      run.run.executor.backend, run.executor(), run.learning_rate.value_or(0.0));
  };
  std::stable_sort(found.begin(), found.end(),
                   [&](const RunView* a, const RunView* b) { return place(*a) < place(*b); });
  return found;
}

std::string samples_text(const Runs& runs) {
  std::int64_t least = -1, most = 0;
  bool epochs = false, iterations = false;
  for (const RunView* run : runs) {
    if (!run->seconds) continue;
    const std::int64_t samples = run->seconds->samples;
    least = least < 0 ? samples : std::min(least, samples);
    most = std::max(most, samples);
    (is_training(*run) ? epochs : iterations) = true;
  }
  if (least < 0) return "nothing measured";
  const bool one = most == 1;
  const char* what = epochs && iterations ? (one ? "iteration or epoch" : "iterations or epochs")
                     : epochs             ? (one ? "epoch" : "epochs")
                                          : (one ? "iteration" : "iterations");
  if (least == most) return fmt::format("{} {} each", count_text(least), what);
  return fmt::format("{} to {} {} each", count_text(least), count_text(most), what);
}

Scale scale_of(double greatest, std::string_view unit) {
  const std::string name(unit);
  if (greatest >= 1e12) return {1e-12, "T" + name};
  if (greatest >= 1e9) return {1e-9, "G" + name};
  if (greatest >= 1e6) return {1e-6, "M" + name};
  if (greatest >= 1e3) return {1e-3, "k" + name};
  return {1.0, name};
}

}  // namespace ridgeline::report
