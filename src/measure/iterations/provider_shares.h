#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/records.h"

namespace ridgeline {

// A share of the time of a step, by provider, largest first.
using ProviderShares = std::vector<std::pair<std::string, double>>;
[[nodiscard]] ProviderShares provider_shares(std::span<const StepTime> steps);
[[nodiscard]] std::string text_of(const ProviderShares& shares);  // "native 92.0%, onednn 8.0%"

}  // namespace ridgeline
