#include "ranks/agree.h"

#include <algorithm>
#include <string>
#include <vector>

#include "base/reason.h"

namespace ridgeline {

std::optional<Error> trouble_of_any(Ranks& ranks, const std::exception* own) {
  std::string told;
  if (own != nullptr) {
    const auto* known = dynamic_cast<const Error*>(own);
    const int kind = static_cast<int>(known != nullptr ? known->kind() : ErrorKind::failure);
    told = fmt::format("{}{}", kind, reason_of(*own));
  }
  const std::vector<std::string> all = ranks.gather(told);
  const auto first =
      std::find_if(all.begin(), all.end(), [](const std::string& text) { return !text.empty(); });
  if (first == all.end()) return std::nullopt;
  const bool same = std::all_of(all.begin(), all.end(),
                                [&](const std::string& other) { return other == *first; });
  const std::string text = first->substr(1);
  return Error(static_cast<ErrorKind>((*first)[0] - '0'),
               same ? text : fmt::format("rank {}: {}", first - all.begin(), text));
}

}  // namespace ridgeline
