#include "base/bf16_unit.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <sstream>

#include "base/error.h"

namespace ridgeline {
namespace {

constexpr const char* kUnitsVariable = "RIDGELINE_CPU_UNITS";
std::atomic<Bf16Unit> most_allowed{Bf16Unit::amx};

const Bf16Units& probed_units() {
  static const Bf16Units units = probe_bf16_units();
  return units;
}

// What works here among the units that the environment allows.
Bf16Unit allowed_unit() {
  const Bf16Unit found = best_of(probed_units());
  const char* given = std::getenv(kUnitsVariable);
  if (given == nullptr) return found;
  bool avx512 = false, amx = false;
  std::istringstream names(given);
  for (std::string name; std::getline(names, name, ',');) {
    if (name == "avx512_bf16") {
      avx512 = true;
    } else if (name == "amx_bf16") {
      amx = true;
    } else if (name != "none") {
      bad_input("RIDGELINE_CPU_UNITS: '{}' is none of avx512_bf16, amx_bf16, none", name);
    }
  }
  if (found == Bf16Unit::amx && amx) return found;
  return avx512 ? std::min(found, Bf16Unit::avx512) : Bf16Unit::none;
}

}  // namespace

Bf16Unit best_of(const Bf16Units& units) {
  if (units.amx == UnitState::works) return Bf16Unit::amx;
  return units.avx512 == UnitState::works ? Bf16Unit::avx512 : Bf16Unit::none;
}

std::string trouble_of(const Bf16Units& units) {
  const auto text = [](const char* unit, UnitState state) -> std::string {
    if (state != UnitState::refused && state != UnitState::wrong) return {};
    return fmt::format(
        "the processor reports {}, but {}", unit,
        state == UnitState::refused ? "refuses its instructions" : "its results are wrong");
  };
  std::string trouble = text("AVX512-BF16", units.avx512);
  return trouble.empty() ? text("AMX", units.amx) : trouble;
}

std::string bf16_trouble() { return trouble_of(probed_units()); }

Bf16Unit bf16_unit() {
  static const Bf16Unit best = allowed_unit();
  return std::min(best, most_allowed.load());
}

void limit_bf16_unit(Bf16Unit most) { most_allowed = most; }

std::string_view name_of(Bf16Unit unit) {
  switch (unit) {
    case Bf16Unit::none:
      return "none";
    case Bf16Unit::avx512:
      return "avx512 bf16";
    case Bf16Unit::amx:
      return "amx bf16";
  }
  return {};
}

std::string refuse_bf16() {
  if (bf16_unit() != Bf16Unit::none) return {};
  const std::string trouble = bf16_trouble();
  return fmt::format("bf16 needs AMX or AVX512-BF16, and {}",
                     std::getenv(kUnitsVariable) != nullptr ? "RIDGELINE_CPU_UNITS leaves neither"
                     : trouble.empty()                      ? why_no_bf16_unit()
                                                            : trouble.c_str());
}

}  // namespace ridgeline
