// Bytes by owner.

#include <algorithm>
#include <array>
#include <numeric>

#include "measure/memory_ledger.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

struct MemoryOwner {
  const char *title, *category, *meaning;
};
constexpr std::array<MemoryOwner, 6> kOwners = {
    {{"parameters", "parameter", "Weights and biases, planned"},
     {"input", "input", "Pixels and labels of the batch, planned"},
     {"activations", "activation", "Forward values that the backward pass needs, planned"},
     {"gradients", "gradient", "Of the parameters, planned"},
     {"optimizer", "optimizer state", "Momenta and the like, planned"},
     {"workspace", "workspace", "Scratch memory of kernels, planned"}}};

// The ledger of a run on its own device.
struct Ledger {
  std::array<std::int64_t, kOwners.size()> owners{};
  std::int64_t planned = 0;             // all that was planned
  std::optional<std::int64_t> total;    // as measured
  std::int64_t others = 0;              // other programs, runs beside this one
  std::optional<std::int64_t> process;  // of the host's process, as measured

  // Planned bytes; nothing of a peer, whose plan is not known.
  [[nodiscard]] std::optional<double> of_plan(std::int64_t bytes) const {
    return planned > 0 ? std::optional(static_cast<double>(bytes)) : std::nullopt;
  }
  // What was planned for no owner of a column.
  [[nodiscard]] std::int64_t rest() const {
    return std::accumulate(owners.begin(), owners.end(), planned, std::minus<>());
  }
};

std::optional<Ledger> ledger_of(const Data& data, const RunView& run) {
  const std::vector<MemoryEntry> entries = data.store().memory(run.run.id);
  if (entries.empty()) return std::nullopt;
  const std::string& device = run.run.executor.device;
  Ledger ledger;
  for (const MemoryEntry& entry : entries) {
    if (entry.device != device) continue;
    if (entry.source == "planned") ledger.planned += entry.bytes;
    if (entry.category == "other runs" || entry.category == "other programs") {
      ledger.others += entry.bytes;
    }
    for (std::size_t i = 0; i < kOwners.size(); ++i) {
      if (entry.category == kOwners[i].category) ledger.owners[i] += entry.bytes;
    }
  }
  const auto first_of = [&](const std::string& where,
                            std::initializer_list<const char*> categories) {
    std::optional<std::int64_t> bytes;
    for (const char* category : categories) {
      if (!bytes) bytes = bytes_of(entries, where, category);
    }
    return bytes;
  };
  ledger.total = first_of(device, {"total", "peer allocator", "peer tensors", "peer process"});
  ledger.process = first_of("cpu", {"total", "peer process"});
  return ledger;
}

}  // namespace

Tables make_memory(const ExhibitInput& input) {
  const auto known = once_per_run([&](const RunView& run) { return ledger_of(input.data, run); });
  const auto ledger = [&](const RunView& run) -> const Ledger& { return known(run).value(); };
  const auto has_ledger = [&](const RunView& run) { return !is_training(run) && known(run); };
  RunTable table(
      input, chosen(input.runs, has_ledger),
      {.title = "Memory by owner",
       .caption =
           " On the run's own device, in MB of 10^6 bytes. Planned bytes come from the plan and "
           "are exact; the total is what operating system or driver report. Planned, overhead and "
           "others add up to the total."});
  const std::string no_plan = "a peer does not tell what its memory is for",
                    no_total = "the total was not measured";
  for (std::size_t i = 0; i < kOwners.size(); ++i) {
    table.numbers(
        {kOwners[i].title, "MB", true, kOwners[i].meaning},
        [=](const RunView& run) { return ledger(run).of_plan(ledger(run).owners[i]); }, 1e-6,
        no_plan);
  }
  table.numbers(
      {"other planned", "MB", true, "Temporaries, statistics, metrics, gaps"},
      [&](const RunView& run) { return ledger(run).of_plan(ledger(run).rest()); }, 1e-6, no_plan);
  table.numbers(
      {"planned", "MB", true, "Sum of all that was planned"},
      [&](const RunView& run) { return ledger(run).of_plan(ledger(run).planned); }, 1e-6, no_plan);
  const auto beside_plan = [&](const RunView& run, std::int64_t bytes) {
    return table.number(ledger(run).total ? ledger(run).of_plan(bytes) : std::nullopt, 1e-6, run,
                        ledger(run).planned > 0 ? no_total : no_plan);
  };
  table.column(
      {"overhead", "MB", true, "Measured and not planned: libraries, context, loader, heap"},
      [&](const RunView& run) {
        const Ledger& of = ledger(run);
        return beside_plan(run, of.total.value_or(0) - of.planned - of.others);
      });
  table.column({"others", "MB", true, "Other programs on the device, runs beside this"},
               [&](const RunView& run) { return beside_plan(run, ledger(run).others); });
  table.column({"total", "MB", true, "As measured on the device"}, [&](const RunView& run) {
    const Ledger& of = ledger(run);
    Cell cell = table.number(of.total, 1e-6, run, no_total);
    if (!of.total || of.planned > 0 || !on_gpu(run)) return cell;
    return table.noted(std::move(cell),
                       "what the peer's allocator holds, without the driver's context");
  });
  table.numbers(
      {"process", "MB", true, "Resident memory of the process on the host"},
      [&](const RunView& run) { return ledger(run).process; }, 1e-6,
      "the process was not measured");
  return table.made();
}

}  // namespace ridgeline::report
