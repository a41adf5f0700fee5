// What networks ask for: work, bytes, intensity.

#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "report/exhibits/makers.h"
#include "report/exhibits/network_work.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

bool any_run(const RunView&) { return true; }

// The batch that most runs of the network have; of several the largest.
std::int64_t usual_batch(const Runs& runs, const RunView& of) {
  std::map<std::int64_t, int> counts;
  for (const RunView* run : runs) {
    if (network_name(*run) == network_name(of) && run->run.work.image == of.run.work.image) {
      ++counts[run->run.work.batch];
    }
  }
  std::int64_t usual = 1;
  int most = 0;
  for (const auto& [batch, count] : counts) {
    if (count < most) continue;
    usual = batch;
    most = count;
  }
  return usual;
}

// One run for each network, input and number of classes.
Runs networks_of(const Runs& runs) {
  Runs networks;
  for (const RunView* run : runs) {
    const bool known = std::any_of(networks.begin(), networks.end(), [&](const RunView* other) {
      return network_name(*other) == network_name(*run) &&
             other->run.work.image == run->run.work.image &&
             other->run.work.classes == run->run.work.classes;
    });
    if (!known) networks.push_back(run);
  }
  return networks;
}

// The bytes that the plan of the run itself moves for each sample, and its FLOPs for each byte.
std::optional<double> measured_intensity(const RunView& run) {
  const auto read = number_of(run, "plan_bytes_read"),
             written = number_of(run, "plan_bytes_written"),
             flops = number_of(run, is_inference(run) ? "forward_flops" : "training_flops");
  if (!read || !written || !flops || *read + *written <= 0.0) return std::nullopt;
  return *flops / (*read + *written);
}

bool has_plan(const RunView& run) {
  return measured_intensity(run).has_value() && !is_inference(run);
}

}  // namespace

Tables make_complexity(const ExhibitInput& input) {
  const Runs runs = chosen(input.runs, any_run);
  const Runs networks = networks_of(runs);
  if (networks.empty()) return {};
  const Heads heads =
      heads_of(input.data, networks, {"model", "image", "classes"},
               {"kind", "batch", "precision", "optimizer", "learning_rate", "data", "normalisation",
                "variant", "command", "machine", "executor", "threads"});
  double greatest = 0.0, least = 1e12;
  for (const RunView* run : networks) {
    const NetworkWork& work = network_work(run->run.work, usual_batch(runs, *run));
    if (!work.error.empty()) continue;
    greatest = std::max(greatest, work.forward_flops);
    least = std::min(least, work.forward_flops);
  }
  // Of networks that differ by orders the small ones must stay readable.
  const Scale scale = scale_of(std::min(greatest, 1e3 * least), "FLOP");
  const std::string macs = scale.unit.substr(0, scale.unit.size() - 4) + "MAC";
  Table table = begin_table(input, "", "Work of the networks", heads);
  table.caption =
      "From the plan of a training step in fp32 on a processor: nothing is measured. MACs are "
      "multiply-adds, FLOPs count two for each; training is forward, both gradients and the "
      "optimizer. Bytes are those that cross the boundaries of the plan's steps at the batch "
      "given.";
  for (TableColumn column : std::vector<TableColumn>{
           {"parameters", "M", true, "Trainable numbers, in millions"},
           {"forward", macs, true, "Multiply-adds of one sample, from the pixels to the loss"},
           {"forward", scale.unit, true, "Floating-point operations of one sample, forward"},
           {"training", scale.unit, true,
            "Floating-point operations of one sample: forward, gradients, optimizer"},
           {"training / forward", "", true, "How much more work training is than inference"},
           {"batch", "", true, "At which bytes and intensity are told"},
           {"bytes", "MB", true, "Moved for one sample by training, 10^6 bytes"},
           {"intensity", "FLOP/byte", true, "FLOPs for each byte of a training step"}}) {
    table.columns.push_back(std::move(column));
  }
  for (const RunView* run : networks) {
    std::vector<Cell> row = begin_row(input.data, heads, *run);
    const std::int64_t batch = usual_batch(runs, *run);
    const NetworkWork& work = network_work(run->run.work, batch);
    if (work.error.empty()) {
      row.push_back(number(work.parameters * 1e-6));
      row.push_back(number(work.forward_macs * scale.factor));
      row.push_back(number(work.forward_flops * scale.factor));
      row.push_back(number(work.training_flops * scale.factor));
      row.push_back(number(work.training_flops / work.forward_flops));
      row.push_back(count_cell(batch));
      row.push_back(number(work.bytes * 1e-6));
      row.push_back(number(work.intensity));
    } else {
      while (row.size() < table.columns.size()) row.push_back(missing(table, work.error));
    }
    table.rows.push_back(std::move(row));
  }
  return {table};
}

Tables make_intensity(const ExhibitInput& input) {
  const Runs runs = chosen(input.runs, has_plan);
  if (runs.empty()) return {};
  std::set<std::int64_t> batches;
  for (const RunView* run : runs) batches.insert(run->run.work.batch);
  const Heads heads = heads_of(input.data, runs, {"model", "executor"},
                               {"batch", "kind", "command", "data", "learning_rate", "threads"});
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
  std::vector<const RunView*> firsts;  // of each row
  const auto name = [&](const RunView& run) {
    return fmt::format("{} {}", run.machine, name_of(input.data, heads, run));
  };
  for (const RunView* run : runs) {
    const auto same = [&](const RunView* other) { return name(*other) == name(*run); };
    if (std::any_of(firsts.begin(), firsts.end(), same)) continue;
    firsts.push_back(run);
    std::vector<Cell> row = begin_row(input.data, heads, *run);
    for (const std::int64_t batch : batches) {
      const auto found = std::find_if(runs.begin(), runs.end(), [&](const RunView* other) {
        return other->run.work.batch == batch && same(other);
      });
      row.push_back(found == runs.end()
                        ? missing(table, "not measured at this batch")
                        : number(measured_intensity(**found).value(), {(*found)->run.id}));
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
