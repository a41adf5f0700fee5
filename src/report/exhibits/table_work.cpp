// What networks ask for: work, bytes, intensity.

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "report/exhibits/makers.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

// What decides how much a network computes.
const FieldNames kNetwork = {"model", "settings", "image", "classes", "freeze"};

// The batch that most of the runs have; of several the largest.
std::int64_t usual_batch(const Runs& runs) {
  std::map<std::int64_t, int> counts;
  for (const RunView* run : runs) ++counts[run->run.work.batch];
  return std::max_element(counts.rbegin(), counts.rend(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

bool trains(const RunView& run) { return run.run.work.kind == "training"; }

// The run that shows best what its network asks for: by the engine, whose plan is known, a whole
// step in fp32 that computes nothing twice, at the usual batch.
const RunView& best_of(const Runs& runs) {
  const std::int64_t usual = usual_batch(runs);
  const auto merit = [&](const RunView* run) {
    return std::tuple(!is_peer(*run), number_of(*run, "forward_macs").has_value(), trains(*run),
                      run->run.work.precision == "fp32", !run->run.executor.recompute,
                      run->run.work.batch == usual);
  };
  return **std::max_element(runs.begin(), runs.end(), [&](const RunView* a, const RunView* b) {
    return merit(a) < merit(b);
  });
}

std::optional<double> plan_bytes(const RunView& run) {
  const auto read = number_of(run, "plan_bytes_read"),
             written = number_of(run, "plan_bytes_written");
  if (!read || !written || *read + *written <= 0.0) return std::nullopt;
  return *read + *written;
}

// FLOPs for each byte that the plan of a training step moves.
std::optional<double> intensity_of(const RunView& run) {
  const auto flops = number_of(run, "training_flops"), bytes = plan_bytes(run);
  if (!flops || !bytes) return std::nullopt;
  return *flops / *bytes;
}

std::vector<Cell> complexity_row(const Data& data, Table& table, const Heads& heads,
                                 const RunView& run, double factor) {
  std::vector<Cell> row = begin_row(data, heads, run);
  const double sample = 1.0 / static_cast<double>(std::max<std::int64_t>(run.run.work.batch, 1));
  const auto add = [&](const std::optional<double>& value, double scale) {
    row.push_back(number_cell(table, value, scale, run,
                              trains(run) ? "not stored with any run of this network"
                                          : "no run of this network trains it"));
    const auto note = run.run.notes.find("complexity");
    if (value && note != run.run.notes.end()) {
      row.back().notes.push_back(note_index(table, note->second));
    }
  };
  const auto forward = number_of(run, "forward_flops"), training = number_of(run, "training_flops");
  add(number_of(run, "parameters"), 1e-6);
  add(number_of(run, "forward_macs"), factor * sample);
  add(forward, factor * sample);
  add(training, factor * sample);
  add(forward && training && *forward > 0.0 ? std::optional(*training / *forward) : std::nullopt,
      1.0);
  row.push_back(words(run.executor()));
  row.push_back(count_cell(run.run.work.batch, {run.run.id}));
  add(trains(run) ? plan_bytes(run) : std::nullopt, 1e-6 * sample);
  add(trains(run) ? intensity_of(run) : std::nullopt, 1.0);
  return row;
}

}  // namespace

Tables make_complexity(const ExhibitInput& input) {
  Runs networks;
  FieldNames others = fields_without(kNetwork);
  others.push_back("precision");
  const Runs runs = chosen(input.runs, [](const RunView&) { return true; });
  for (const Runs& alike : grouped(runs, others)) networks.push_back(&best_of(alike));
  if (networks.empty()) return {};
  const Heads heads = heads_of(input.data, networks, {"model", "image", "classes"}, others);
  double greatest = 0.0, least = 1e12;
  for (const RunView* run : networks) {
    const std::optional<double> flops = flops_of_sample(*run);
    greatest = std::max(greatest, flops.value_or(greatest));
    least = std::min(least, flops.value_or(least));
  }
  // Of networks that differ by orders the small ones must stay readable.
  const Scale scale = scale_of(std::min(greatest, 1e3 * least), "FLOP");
  const std::string macs = scale.unit.substr(0, scale.unit.size() - 4) + "MAC";
  Table table = begin_table(input, "", "Work of the networks", heads);
  table.caption =
      "From the plan of a training step, of one sample: nothing is measured. MACs are "
      "multiply-adds, FLOPs count two for each; training is forward, both gradients and the "
      "optimizer. Bytes are those that cross the boundaries of the steps of the executor's plan.";
  for (TableColumn column : std::vector<TableColumn>{
           {"parameters", "M", true, "Trainable numbers, in millions"},
           {"forward", macs, true, "Multiply-adds of one sample, from the pixels to the loss"},
           {"forward", scale.unit, true, "Floating-point operations of one sample, forward"},
           {"training", scale.unit, true,
            "Floating-point operations of one sample: forward, gradients, optimizer"},
           {"training / forward", "", true, "How much more work training is than inference"},
           {"plan of", "", false, "The executor whose plan moves the bytes"},
           {"batch", "", true, "At which bytes and intensity are told"},
           {"bytes", "MB", true, "Moved for one sample by training, 10^6 bytes"},
           {"intensity", "FLOP/byte", true, "FLOPs for each byte of a training step"}}) {
    table.columns.push_back(std::move(column));
  }
  for (const RunView* run : networks) {
    table.rows.push_back(complexity_row(input.data, table, heads, *run, scale.factor));
  }
  return {table};
}

Tables make_intensity(const ExhibitInput& input) {
  const Runs runs = without_trainings(without_profiles(chosen(input.runs, [](const RunView& run) {
    return trains(run) && intensity_of(run).has_value();
  })));
  if (runs.empty()) return {};
  std::set<std::int64_t> batches;
  for (const RunView* run : runs) batches.insert(run->run.work.batch);
  const Heads heads = heads_of(input.data, runs, {"model", "executor"}, {"batch"});
  Table table = begin_table(input, "", "Arithmetic intensity by batch", heads);
  table.caption +=
      " FLOPs of a training step for each byte that crosses the boundaries of its plan's steps. "
      "Beyond the ridge point a step of these FLOPs and bytes could be bound by computing, below "
      "it "
      "only by memory.";
  for (const std::int64_t batch : batches) {
    table.columns.push_back({fmt::format("batch {}", count_text(batch)), "FLOP/byte", true,
                             fmt::format("Intensity of a training step of {} samples", batch)});
  }
  table.columns.push_back(
      {"ridge point", "FLOP/byte", true,
       "Where the roof of the main memory meets that of computing, as measured"});
  for (const Runs& alike : grouped(runs, {"batch"})) {
    const RunView* run = alike.front();
    std::vector<Cell> row = begin_row(input.data, heads, *run);
    for (const std::int64_t batch : batches) {
      const auto found = std::find_if(alike.begin(), alike.end(), [&](const RunView* other) {
        return other->run.work.batch == batch;
      });
      row.push_back(found == alike.end() ? missing(table, "not measured at this batch")
                                         : number(*intensity_of(**found), {(*found)->run.id}));
    }
    const Roofs roofs = input.data.roofs(*run);
    const std::string unit =
        run->run.work.precision == "fp32" ? "fp32" : "tensor " + run->run.work.precision;
    const ComputeRoof* compute = roofs.find_compute(unit);
    row.push_back(compute == nullptr || roofs.memory.empty()
                      ? missing(table, "the ceilings of this device were not measured")
                      : number(ridge_point(*compute, roofs.memory.back())));
    table.rows.push_back(std::move(row));
  }
  return {table};
}

}  // namespace ridgeline::report
