#include "measure/iterations/provider_shares.h"

#include <algorithm>
#include <map>

#include "base/error.h"

namespace ridgeline {

ProviderShares provider_shares(std::span<const StepTime> steps) {
  std::map<std::string, double> sums;
  double total = 0.0;
  for (const StepTime& step : steps) {
    sums[step.provider] += step.seconds;
    total += step.seconds;
  }
  ProviderShares shares(sums.begin(), sums.end());
  for (auto& [provider, share] : shares) share = total > 0.0 ? share / total : 0.0;
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return shares;
}

std::string text_of(const ProviderShares& shares) {
  std::string text;
  for (const auto& [provider, share] : shares) {
    text += fmt::format("{}{} {:.1f}%", text.empty() ? "" : ", ", provider, 100.0 * share);
  }
  return text;
}

}  // namespace ridgeline
