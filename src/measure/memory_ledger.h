#pragma once

// Where a run's memory goes: what its plans asked for, next to what the operating system and the
// driver report. The entries of a device add up to the one named "total"; what no part is known to
// own is "rest".
//
//   MemoryLedger ledger(device);             // before the data is opened and anything is planned
//   …open the loader…  ledger.mark("loader");
//   …plan, prepare, run a few steps…
//   entries = ledger.entries(session, plans);
//
// Categories on every device: the roles of values ("parameter", "gradient", "activation", …),
// "alignment" (gaps between them), "granularity" (memory comes in whole pages and blocks), "other
// runs" (what sessions beside this one hold), "loader", "libraries", "rest", "total". On the host
// also "untouched" (planned memory that no step has used yet: negative), "data files", "generated
// code", "stacks", "heap", "fragmentation" (free memory that the allocator keeps), "driver" (what
// that of a graphics processor takes past the allocator). On a graphics processor also "driver"
// (its reserve), "context", "other programs" (and in place of "libraries" both as one, where the
// driver does not tell whose memory is whose).

#include <functional>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "measure/machine/host_memory.h"
#include "measure/telemetry/gpu_sensors.h"
#include "plan/session.h"
#include "store/records.h"

namespace ridgeline {

// Who is asked for measured bytes; tests answer themselves.
struct MemoryProbe {
  std::function<HostMemory()> host = read_host_memory;
  std::function<std::int64_t()> heap = heap_bytes;
  std::function<GpuMemory(const std::string&)> gpu = [](const std::string& device) {
    return gpu_memory(device);
  };
};

class MemoryLedger {
 public:
  // Notes what is there before the run. REQUIRES: the device outlives the ledger.
  explicit MemoryLedger(const Device& device, MemoryProbe probe = {});

  // What the heap has grown by since the last mark or the beginning belongs to this category.
  void mark(const std::string& category);

  // For the run's device; for a graphics processor the host's part comes after it. `plans` are
  // those of the session. REQUIRES: the session is prepared.
  [[nodiscard]] std::vector<MemoryEntry> entries(const Session& session,
                                                 std::span<const Session::PlanId> plans) const;

 private:
  [[nodiscard]] std::vector<MemoryEntry> host_entries(const Session* session,
                                                      std::span<const Session::PlanId> plans) const;
  [[nodiscard]] std::vector<MemoryEntry> gpu_entries(const Session& session,
                                                     std::span<const Session::PlanId> plans) const;

  const Device& device_;
  MemoryProbe probe_;
  std::int64_t heap_ = 0;                      // at the last mark
  std::map<std::string, std::int64_t> marks_;  // growth by category
  std::int64_t runtime_ = 0;                   // of the device, before the run
  std::int64_t others_ = 0;                    // of that, by other programs
};

// Bytes of the arenas by role, and "alignment": they add up to what the session allocates.
[[nodiscard]] std::vector<MemoryEntry> planned_entries(const Session& session,
                                                       std::span<const Session::PlanId> plans);

// Of one device; nothing where the ledger has no such entry.
[[nodiscard]] std::optional<std::int64_t> bytes_of(const std::vector<MemoryEntry>& entries,
                                                   const std::string& device,
                                                   const std::string& category);

// All entries as a table, each with its share of the total and how it is known.
[[nodiscard]] std::string ledger_text(const std::vector<MemoryEntry>& entries);

// A few rows side by side: parameters, input, activations, gradients, optimizer state, framework
// overhead (everything else of the run), other programs and total, of the first device of each
// ledger.
using NamedLedger = std::pair<std::string, std::vector<MemoryEntry>>;
[[nodiscard]] std::string study_memory_text(std::span<const NamedLedger> ledgers);

}  // namespace ridgeline
