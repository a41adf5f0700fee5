#include "cli/ceilings_output.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/tables.h"

namespace ridgeline::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Prefix {
  double factor;
  const char* name;
};

// The largest prefix that leaves at least one digit before the point.
template <std::size_t count>
Prefix prefix_of(double value, const std::array<Prefix, count>& prefixes) {
  for (const Prefix& prefix : prefixes) {
    if (value >= prefix.factor) return prefix;
  }
  return prefixes.back();
}

Prefix prefix_of(double value, const std::string& unit) {
  static constexpr std::array<Prefix, 3> kRates = {{{1e12, "T"}, {1e9, "G"}, {1e6, "M"}}};
  static constexpr std::array<Prefix, 3> kTimes = {{{1e-3, "m"}, {1e-6, "µ"}, {1e-9, "n"}}};
  return unit == "s" ? prefix_of(value, kTimes) : prefix_of(value, kRates);
}

std::string digits(double value) {
  return value >= 100.0 ? fmt::format("{:.1f}", value) : fmt::format("{:.2f}", value);
}

// "-3.1% +0.4%": from the median to the slowest and to the fastest.
std::string spread_text(const Ceiling& ceiling) {
  return fmt::format("{:+.1f}% {:+.1f}%", 100.0 * (ceiling.low / ceiling.value - 1.0),
                     100.0 * (ceiling.high / ceiling.value - 1.0));
}

}  // namespace

std::string ceiling_value_text(double value, const std::string& unit) {
  const Prefix prefix = prefix_of(value, unit);
  return fmt::format("{} {}{}", digits(value / prefix.factor), prefix.name, unit);
}

std::vector<std::string> ceiling_columns() {
  return {"device", "kind",   "of",      "path", "scope",      "size",
          "median", "spread", "highest", "MHz",  "data sheet", "share"};
}

std::string ceilings_text(std::span<const Ceiling> ceilings) {
  TextTable table(ceiling_columns(), "lllllrrrrrrr");
  table.important({"kind", "of", "path", "scope", "median", "highest", "share", "device"});
  for (const Ceiling& ceiling : ceilings) {
    table.add_row(
        {ceiling.device, ceiling.kind, ceiling.subject, ceiling.path, ceiling.scope,
         ceiling.capacity_bytes > 0 ? bytes_text(ceiling.capacity_bytes) : "",
         ceiling_value_text(ceiling.value, ceiling.unit), spread_text(ceiling),
         (ceiling.lower_bound ? "at least " : "") + ceiling_value_text(ceiling.high, ceiling.unit),
         ceiling.clock_mhz ? fmt::format("{:.0f}", *ceiling.clock_mhz) : "n/a",
         ceiling.datasheet ? ceiling_value_text(*ceiling.datasheet, ceiling.unit) : "n/a",
         ceiling.datasheet ? fmt::format("{:.1f}%", 100.0 * ceiling.value / *ceiling.datasheet)
                           : "n/a"});
  }
  return shown_main(table);
}

Json ceilings_json(std::span<const Ceiling> ceilings) {
  Json rows = Json::array();
  for (const Ceiling& ceiling : ceilings) {
    const Json share = ceiling.datasheet ? Json(ceiling.value / *ceiling.datasheet) : Json(nullptr);
    rows.push_back({{"device", ceiling.device},
                    {"kind", ceiling.kind},
                    {"subject", ceiling.subject},
                    {"path", ceiling.path},
                    {"scope", ceiling.scope},
                    {"unit", ceiling.unit},
                    {"value", ceiling.value},
                    {"low", ceiling.low},
                    {"high", ceiling.high},
                    {"lower_bound", ceiling.lower_bound},
                    {"clock_mhz", or_null(ceiling.clock_mhz)},
                    {"datasheet", or_null(ceiling.datasheet)},
                    {"share_of_datasheet", share},
                    {"capacity_bytes",
                     ceiling.capacity_bytes > 0 ? Json(ceiling.capacity_bytes) : Json(nullptr)}});
  }
  return rows;
}

}  // namespace ridgeline::cli
