#include "lab/bucket.h"

#include <algorithm>
#include <filesystem>

#include "analysis/roofline/roofs.h"
#include "base/error.h"
#include "graph/divide.h"
#include "measure/machine/environment.h"

namespace ridgeline {

std::int64_t best_bucket(std::span<const Ceiling> ceilings, int ranks) {
  constexpr std::int64_t kSmallest = 64 << 10, kLargest = 16 << 20;
  constexpr double kEnough = 1.1;
  const Roofs roofs = roofs_of(ceilings, "cpu", 0);
  const auto per_byte = [&](std::int64_t bytes) {
    const auto size = static_cast<double>(bytes);
    const auto seconds = roofs.all_reduce_seconds(fmt::format("{} ranks", ranks), size);
    return seconds ? std::optional(*seconds / size) : std::nullopt;
  };
  std::optional<double> best;
  for (std::int64_t bytes = kSmallest; bytes <= kLargest; bytes *= 2) {
    if (const auto cost = per_byte(bytes)) best = std::min(best.value_or(*cost), *cost);
  }
  if (!best) return kBucketBytes;
  std::int64_t bytes = kSmallest;
  while (bytes<kLargest&& * per_byte(bytes)> kEnough * *best) bytes *= 2;
  return bytes;
}

std::int64_t usual_bucket(const StoreOptions& options, int ranks) {
  if (options.none || options.path == "none" || !std::filesystem::exists(options.path)) {
    return kBucketBytes;
  }
  const Store store = Store::open_existing(options.path);
  const EnvironmentRecord here = environment_record(read_environment(), options.environment_label);
  return best_bucket(store.ceilings(here.key), ranks);
}

}  // namespace ridgeline
