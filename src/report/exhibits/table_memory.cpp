// Bytes by owner.

#include <algorithm>
#include <array>

#include "lab/memory_ledger.h"
#include "report/exhibits/makers.h"
#include "report/exhibits/run_table.h"

namespace ridgeline::report {
namespace {

struct Owner {
  const char *title, *category, *meaning;
};
constexpr std::array<Owner, 6> kOwners = {
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
  const Runs runs = chosen(input.runs, [&](const RunView& run) {
    return !is_training(run) && ledger_of(input.data, run).has_value();
  });
  if (runs.empty()) return {};
  const Heads heads = heads_of(input.data, runs, {"model", "batch", "machine", "executor"});
  Table table = begin_table(input, "", "Memory by owner", heads);
  table.caption +=
      " On the run's own device, in MB of 10^6 bytes. Planned bytes come from the plan and are "
      "exact; the total is what operating system or driver report. Planned, overhead and others "
      "add "
      "up to the total.";
  for (const Owner& owner : kOwners) {
    table.columns.push_back({owner.title, "MB", true, owner.meaning});
  }
  table.columns.push_back({"other planned", "MB", true, "Temporaries, statistics, metrics, gaps"});
  table.columns.push_back({"planned", "MB", true, "Sum of all that was planned"});
  table.columns.push_back(
      {"overhead", "MB", true, "Measured and not planned: libraries, context, loader, heap"});
  table.columns.push_back({"others", "MB", true, "Other programs on the device, runs beside this"});
  table.columns.push_back({"total", "MB", true, "As measured on the device"});
  table.columns.push_back({"process", "MB", true, "Resident memory of the process on the host"});
  for (const RunView* run : runs) {
    const Ledger ledger = ledger_of(input.data, *run).value();
    std::vector<Cell> row = begin_row(input.data, heads, *run);
    const std::vector<RunId> id = {run->run.id};
    const auto megabytes = [&](std::int64_t bytes) {
      return number(1e-6 * static_cast<double>(bytes), id);
    };
    const bool planned = ledger.planned > 0;
    const std::string no_plan = "a peer does not tell what its memory is for";
    std::int64_t rest = ledger.planned;
    for (const std::int64_t bytes : ledger.owners) {
      row.push_back(planned ? megabytes(bytes) : missing(table, no_plan));
      rest -= bytes;
    }
    row.push_back(planned ? megabytes(rest) : missing(table, no_plan));
    row.push_back(planned ? megabytes(ledger.planned) : missing(table, no_plan));
    if (ledger.total && planned) {
      row.push_back(megabytes(*ledger.total - ledger.planned - ledger.others));
      row.push_back(megabytes(ledger.others));
    } else {
      row.push_back(missing(table, planned ? "the total was not measured" : no_plan));
      row.push_back(missing(table, planned ? "the total was not measured" : no_plan));
    }
    row.push_back(ledger.total ? megabytes(*ledger.total)
                               : missing(table, "the total was not measured"));
    if (ledger.total && !planned && on_gpu(*run)) {
      row.back().notes.push_back(
          note_index(table, "what the peer's allocator holds, without the driver's context"));
    }
    row.push_back(ledger.process ? megabytes(*ledger.process)
                                 : missing(table, "the process was not measured"));
    table.rows.push_back(std::move(row));
  }
  return {table};
}

}  // namespace ridgeline::report
