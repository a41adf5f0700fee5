#include "measure/memory_ledger.h"

#include <algorithm>
#include <array>

#include "plan/memory.h"

namespace ridgeline {
namespace {

std::int64_t arena_bytes(const Session& session) {
  return session.state_bytes() + session.scratch_bytes();
}

std::int64_t occupied_bytes(const Session& session) {
  const Device& device = session.device();
  return static_cast<std::int64_t>(device.occupied(session.state().size()) +
                                   device.occupied(session.scratch().size()));
}

// Behind the end of an arena, what its last page takes up.
std::int64_t resident_behind(const Device& device, std::span<const std::byte> arena) {
  return resident_bytes(
      {arena.data() + arena.size(), device.occupied(arena.size()) - arena.size()});
}

// State is shared by name between plans, an input as large as the largest batch. Bytes are those of
// the arena, as the plan counts them.
std::map<std::string, std::pair<Role, std::int64_t>> state_of(
    const Session& session, std::span<const Session::PlanId> plans) {
  std::map<std::string, std::pair<Role, std::int64_t>> state;
  for (const Session::PlanId id : plans) {
    const Plan& plan = session.plan(id);
    for (std::size_t form = 0; form < plan.forms.size(); ++form) {
      if (!plan.in_state(static_cast<FormId>(form))) continue;
      const Value& value = plan.graph->value(plan.forms[form].value);
      auto& [role, bytes] = state[value.name];
      role = value.role;
      bytes = std::max(bytes, aligned(plan.forms[form].bytes));
    }
  }
  return state;
}

// What other programs hold; nothing where the driver does not tell whose memory is whose.
std::int64_t others_of(const GpuMemory& gpu) {
  if (!gpu.used || !gpu.process) return 0;
  return std::max<std::int64_t>(0, *gpu.used - gpu.reserved.value_or(0) - *gpu.process);
}

// Entries of one device that add up to a total.
class Account {
 public:
  explicit Account(std::string device) : device_(std::move(device)) {}

  void add(const std::string& category, const char* source, std::int64_t bytes) {
    if (bytes == 0) return;
    entries_.push_back({device_, category, source, bytes});
    sum_ += bytes;
  }
  void add(const std::vector<MemoryEntry>& planned) {
    for (const MemoryEntry& entry : planned) add(entry.category, entry.source.c_str(), entry.bytes);
  }
  // Takes at most what is left of a quantity that is only known as a whole.
  void add_part(const std::string& category, std::int64_t bytes, std::int64_t& left) {
    const std::int64_t part = std::clamp<std::int64_t>(bytes, 0, std::max<std::int64_t>(left, 0));
    add(category, "derived", part);
    left -= part;
  }
  [[nodiscard]] std::vector<MemoryEntry> close(std::int64_t total, const char* source) {
    entries_.push_back({device_, "rest", "derived", total - sum_});
    entries_.push_back({device_, "total", source, total});
    return std::move(entries_);
  }

 private:
  std::string device_;
  std::vector<MemoryEntry> entries_;
  std::int64_t sum_ = 0;
};

}  // namespace

std::vector<MemoryEntry> planned_entries(const Session& session,
                                         std::span<const Session::PlanId> plans) {
  std::array<std::int64_t, kRoles> by_role{};
  const auto add = [&](Role role, std::int64_t bytes) {
    by_role[static_cast<std::size_t>(role)] += bytes;
  };
  for (const auto& [name, entry] : state_of(session, plans)) add(entry.first, entry.second);
  add(Role::metric, aligned(sizeof(StepState)));
  // One scratch arena serves all plans: that which needs most tells what it is for.
  const auto largest =
      std::max_element(plans.begin(), plans.end(), [&](Session::PlanId a, Session::PlanId b) {
        return session.plan(a).scratch_bytes < session.plan(b).scratch_bytes;
      });
  const MemoryUse use = session.plan(*largest).memory();
  for (const Role role : {Role::activation, Role::temporary, Role::workspace}) {
    add(role, use.of(role));
  }
  std::vector<MemoryEntry> entries;
  std::int64_t sum = 0;
  for (int role = 0; role < kRoles; ++role) {
    const std::int64_t bytes = by_role[static_cast<std::size_t>(role)];
    sum += bytes;
    if (bytes == 0) continue;
    entries.push_back(
        {session.device().name(), std::string(name_of(static_cast<Role>(role))), "planned", bytes});
  }
  entries.push_back({session.device().name(), "alignment", "planned", arena_bytes(session) - sum});
  return entries;
}

MemoryLedger::MemoryLedger(const Device& device, MemoryProbe probe)
    : device_(device),
      probe_(std::move(probe)),
      heap_(probe_.heap()),
      runtime_(static_cast<std::int64_t>(device.runtime_memory().value_or(0))),
      others_(device.kind() == "cpu" ? 0 : others_of(probe_.gpu(device.name()))) {}

void MemoryLedger::mark(const std::string& category) {
  const std::int64_t now = probe_.heap();
  marks_[category] += now - heap_;
  heap_ = now;
}

std::vector<MemoryEntry> MemoryLedger::entries(const Session& session,
                                               std::span<const Session::PlanId> plans) const {
  if (device_.kind() == "cpu") return host_entries(&session, plans);
  std::vector<MemoryEntry> entries = gpu_entries(session, plans);
  for (MemoryEntry& entry : host_entries(nullptr, {})) entries.push_back(std::move(entry));
  return entries;
}

std::vector<MemoryEntry> MemoryLedger::host_entries(const Session* session,
                                                    std::span<const Session::PlanId> plans) const {
  const HostMemory host = probe_.host();
  Account account("cpu");
  std::int64_t own = 0;  // of the arenas, what is in use
  if (session != nullptr) {
    account.add(planned_entries(*session, plans));
    // The state was filled when it was allocated.
    own = session->state_bytes() + resident_bytes(session->scratch());
    account.add("untouched", "measured", own - arena_bytes(*session));
    const std::int64_t behind =
        resident_behind(device_, session->state()) + resident_behind(device_, session->scratch());
    account.add("granularity", "measured", behind);
    own += behind;
  }
  // Where the system has no large pages, arenas do not stand out from the rest.
  std::int64_t other = host.other;
  if (host.arenas > 0) {
    account.add("other runs", "derived", std::max<std::int64_t>(0, host.arenas - own));
  } else {
    other = std::max<std::int64_t>(0, other - own);
  }
  account.add("libraries", "measured", host.libraries);
  account.add("data files", "measured", host.files);
  account.add("generated code", "measured", host.generated_code);
  account.add("stacks", "measured", host.stacks);
  std::int64_t heap = std::min(host.heap_used, other);
  const std::int64_t free = other - heap;
  for (const auto& [category, bytes] : marks_) account.add_part(category, bytes, heap);
  account.add("heap", "measured", heap);
  const std::int64_t fragmentation = std::min(host.heap_free, free);
  account.add("fragmentation", "derived", fragmentation);
  // Memory that the allocator knows nothing of, in a process with a driver, is the driver's.
  const std::int64_t unknown = host.driver_loaded ? free - fragmentation : 0;
  account.add("driver", unknown > 0 ? "derived" : "measured", host.driver + unknown);
  return account.close(host.resident, "measured");
}

std::vector<MemoryEntry> MemoryLedger::gpu_entries(const Session& session,
                                                   std::span<const Session::PlanId> plans) const {
  const GpuMemory gpu = probe_.gpu(device_.name());
  const auto runtime = static_cast<std::int64_t>(device_.runtime_memory().value_or(0));
  const auto ours = static_cast<std::int64_t>(device_.allocated_memory());
  const auto staged = static_cast<std::int64_t>(device_.staging_memory(session.state()));
  const std::int64_t own = arena_bytes(session);
  const std::int64_t total = gpu.used.value_or(ours + runtime);
  const std::int64_t reserve = gpu.used ? gpu.reserved.value_or(0) : 0;
  Account account(device_.name());
  account.add(planned_entries(session, plans));
  account.add("loader", "measured", staged);
  account.add("other runs", "measured", ours - own - staged);

  // CUDA may or may not count the driver's reserve as used; the driver's total always has it.
  const bool apart = total - runtime - ours >= reserve / 2;
  account.add("driver", "measured", reserve);

  // What we did not allocate, of all programs: those beside this one may have come since the run
  // began, as a peer does.
  std::int64_t left = runtime - (apart ? 0 : reserve);
  const std::int64_t others = others_of(gpu);
  account.add_part("other programs", others, left);
  const std::int64_t before = runtime_ - (apart ? 0 : reserve) - std::min(others, others_);
  account.add_part("context", before, left);
  account.add_part("granularity", occupied_bytes(session) - own, left);
  account.add_part(gpu.process ? "libraries" : "libraries and other programs", left, left);
  return account.close(total, gpu.used ? "measured" : "derived");
}

}  // namespace ridgeline
