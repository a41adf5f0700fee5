// What networks ask for: work, bytes, intensity.

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
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
  return **std::ranges::max_element(
      runs, [&](const RunView* a, const RunView* b) { return merit(a) < merit(b); });
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

void add_complexity(RunTable& table, const DisplayUnit& scale) {
  const auto add = [&](TableColumn head, double factor, bool of_sample,
                       const RunTable::Value& value) {
    table.column(std::move(head), [&table, factor, of_sample, value](const RunView& run) {
      const auto batch = static_cast<double>(std::max<std::int64_t>(run.run.work.batch, 1));
      const std::optional<double> known = value(run);
      Cell cell = table.number(known, of_sample ? factor * (1.0 / batch) : factor, run,
                               trains(run) ? "not stored with any run of this network"
                                           : "no run of this network trains it");
      const auto note = run.run.notes.find("complexity");
      if (!known || note == run.run.notes.end()) return cell;
      return table.noted(std::move(cell), note->second);
    });
  };
  const auto stored = [](const char* name) {
    return [name](const RunView& run) { return number_of(run, name); };
  };
  const std::string macs = scale.unit.substr(0, scale.unit.size() - 4) + "MAC";
  add({"parameters", "M", true, "Trainable numbers, in millions"}, 1e-6, false,
      stored("parameters"));
  add({"forward", macs, true, "Multiply-adds of one sample, from the pixels to the loss"},
      scale.factor, true, stored("forward_macs"));
  add({"forward", scale.unit, true, "Floating-point operations of one sample, forward"},
      scale.factor, true, stored("forward_flops"));
  add({"training", scale.unit, true,
       "Floating-point operations of one sample: forward, gradients, optimizer"},
      scale.factor, true, stored("training_flops"));
  add({"training / forward", "", true, "How much more work training is than inference"}, 1.0, false,
      [](const RunView& run) -> std::optional<double> {
        const auto forward = number_of(run, "forward_flops"),
                   training = number_of(run, "training_flops");
        if (!forward || !training || *forward <= 0.0) return std::nullopt;
        return *training / *forward;
      });
  table.column({"plan of", "", false, "The executor whose plan moves the bytes"},
               [](const RunView& run) { return words(run.executor()); });
  table.column({"batch", "", true, "At which bytes and intensity are told"},
               [](const RunView& run) { return count_cell(run.run.work.batch, {run.run.id}); });
  add({"bytes", "MB", true, "Moved for one sample by training, 10^6 bytes"}, 1e-6, true,
      [](const RunView& run) { return trains(run) ? plan_bytes(run) : std::nullopt; });
  add({"intensity", "FLOP/byte", true, "FLOPs for each byte of a training step"}, 1.0, false,
      [](const RunView& run) { return trains(run) ? intensity_of(run) : std::nullopt; });
}

}  // namespace

Tables make_complexity(const ExhibitInput& input) {
  Runs networks;
  FieldNames others = fields_without(kNetwork);
  others.push_back("precision");
  const Runs runs = chosen(input.runs, [](const RunView&) { return true; });
  for (const Runs& alike : grouped(runs, others)) networks.push_back(&best_of(alike));
  double greatest = 0.0, least = 1e12;
  for (const RunView* run : networks) {
    const std::optional<double> flops = flops_of_sample(*run);
    greatest = std::max(greatest, flops.value_or(greatest));
    least = std::min(least, flops.value_or(least));
  }
  // Of networks that differ by orders the small ones must stay readable.
  const DisplayUnit scale = unit_of(std::min(greatest, 1e3 * least), "FLOP");
  RunTable table(
      input, networks,
      {.title = "Work of the networks",
       .caption = "From the plan of a training step, of one sample: nothing is measured. MACs are "
                  "multiply-adds, FLOPs count two for each; training is forward, both gradients "
                  "and the optimizer. Bytes are those that cross the boundaries of the steps of "
                  "the executor's plan.",
       .always = {"model", "image", "classes"},
       .never = others,
       .shared = false});
  add_complexity(table, scale);
  return table.made();
}

Tables make_intensity(const ExhibitInput& input) {
  const Runs runs = without_trainings(without_profiles(chosen(input.runs, [](const RunView& run) {
    return trains(run) && intensity_of(run).has_value();
  })));
  const std::vector<Runs> groups = grouped(runs, {"batch"});
  RunTable table(input, runs,
                 {.title = "Arithmetic intensity by batch",
                  .caption = " FLOPs of a training step for each byte that crosses the boundaries "
                             "of its plan's steps. Beyond the ridge point a step of these FLOPs "
                             "and bytes could be bound by computing, below it only by memory.",
                  .always = {"model", "executor"},
                  .never = {"batch"}});
  std::set<std::int64_t> batches;
  for (const RunView* run : runs) batches.insert(run->run.work.batch);
  for (const std::int64_t batch : batches) {
    table.column({fmt::format("batch {}", count_text(batch)), "FLOP/byte", true,
                  fmt::format("Intensity of a training step of {} samples", batch)},
                 [&, batch](const RunView& run) {
                   const Runs found = only(group_of(groups, run), [&](const RunView& other) {
                     return other.run.work.batch == batch;
                   });
                   return found.empty() ? table.missing("not measured at this batch")
                                        : number(*intensity_of(*found[0]), {found[0]->run.id});
                 });
  }
  table.column({"ridge point", "FLOP/byte", true,
                "Where the roof of the main memory meets that of computing, as measured"},
               [&](const RunView& run) {
                 const Roofs roofs = input.data.roofs(run);
                 const ComputeRoof* compute = roofs.find_precision(run.run.work.precision);
                 return compute == nullptr || roofs.memory.empty()
                            ? table.missing("the ceilings of this device were not measured")
                            : number(ridge_point(*compute, roofs.memory.back()));
               });
  Runs first;
  for (const Runs& group : groups) first.push_back(group.front());
  return table.made_of(first);
}

}  // namespace ridgeline::report
