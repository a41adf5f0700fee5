// The memory ledger as tables.

#include <algorithm>
#include <array>
#include <optional>

#include "base/error.h"
#include "base/text.h"
#include "measure/memory_ledger.h"

namespace ridgeline {

std::optional<std::int64_t> bytes_of(const std::vector<MemoryEntry>& entries,
                                     const std::string& device, const std::string& category) {
  for (const MemoryEntry& entry : entries) {
    if (entry.device == device && entry.category == category) return entry.bytes;
  }
  return std::nullopt;
}

std::string ledger_text(const std::vector<MemoryEntry>& entries) {
  TextTable table({"device", "category", "bytes", "size", "share", "known by"}, "llrrrl");
  for (const MemoryEntry& entry : entries) {
    const std::optional<std::int64_t> total = bytes_of(entries, entry.device, "total");
    const std::string share =
        total && *total > 0 ? fmt::format("{:.1f}%", 100.0 * static_cast<double>(entry.bytes) /
                                                         static_cast<double>(*total))
                            : "n/a";
    table.add_row({entry.device, entry.category, count_text(entry.bytes), bytes_text(entry.bytes),
                   share, entry.source});
  }
  return table.text();
}

std::string study_memory_text(std::span<const NamedLedger> ledgers) {
  struct Row {
    const char *name, *category;
  };
  constexpr std::array<Row, 5> kRows = {{{"parameters", "parameter"},
                                         {"input", "input"},
                                         {"activations", "activation"},
                                         {"gradients", "gradient"},
                                         {"optimizer state", "optimizer state"}}};
  std::vector<std::string> header = {"memory"};
  for (const NamedLedger& ledger : ledgers) header.push_back(ledger.first);
  TextTable table(header, "l" + std::string(ledgers.size(), 'r'));
  const auto device_of = [](const NamedLedger& ledger) {
    return ledger.second.empty() ? std::string() : ledger.second.front().device;
  };
  const auto of = [&](const NamedLedger& ledger, const char* category) {
    return bytes_of(ledger.second, device_of(ledger), category);
  };
  const auto add_row = [&](const char* name, const auto& value) {
    std::vector<std::string> cells = {name};
    for (const NamedLedger& ledger : ledgers) {
      const std::optional<std::int64_t> bytes = value(ledger);
      cells.push_back(bytes ? bytes_text(*bytes) : "n/a");
    }
    table.add_row(std::move(cells));
  };
  for (const Row& row : kRows) {
    add_row(row.name, [&](const NamedLedger& ledger) { return of(ledger, row.category); });
  }
  const auto others = [&](const NamedLedger& ledger) {
    return of(ledger, "other programs").value_or(0) + of(ledger, "other runs").value_or(0);
  };
  add_row("framework overhead", [&](const NamedLedger& ledger) {
    std::optional<std::int64_t> rest = of(ledger, "total");
    if (rest) *rest -= others(ledger);
    for (const Row& row : kRows) {
      if (rest) *rest -= of(ledger, row.category).value_or(0);
    }
    return rest;
  });
  if (std::any_of(ledgers.begin(), ledgers.end(),
                  [&](const NamedLedger& ledger) { return others(ledger) != 0; })) {
    add_row("other programs and runs", [&](const NamedLedger& ledger) {
      return of(ledger, "total") ? std::optional(others(ledger)) : std::nullopt;
    });
  }
  add_row("total", [&](const NamedLedger& ledger) { return of(ledger, "total"); });
  return table.text();
}

}  // namespace ridgeline
