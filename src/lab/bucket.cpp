#include "lab/bucket.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "analysis/roofline/roofs.h"
#include "base/error.h"
#include "graph/divide.h"
#include "measure/machine/environment.h"

namespace ridgeline {

std::int64_t unmeasured_bucket(std::string_view device_kind) {
  constexpr std::int64_t kGpus = std::int64_t{8} << 20;
  return device_kind == "cuda" ? kGpus : kBucketBytes;
}

std::int64_t best_bucket(std::span<const Ceiling> ceilings, int ranks,
                         std::string_view device_kind) {
  constexpr std::int64_t kSmallest = 64 << 10, kLargest = 16 << 20;
  constexpr double kEnough = 1.1;
  const Roofs roofs = roofs_of(ceilings, "cpu", 0);
  std::map<std::int64_t, double> seconds_per_byte;
  for (std::int64_t bytes = kSmallest; bytes <= kLargest; bytes *= 2) {
    const auto size = static_cast<double>(bytes);
    const auto seconds = roofs.all_reduce_seconds(link_unit(ranks, device_kind), size);
    if (!seconds) return unmeasured_bucket(device_kind);
    seconds_per_byte[bytes] = *seconds / size;
  }
  const auto slower = [](const auto& a, const auto& b) { return a.second < b.second; };
  const double enough = kEnough * std::ranges::min_element(seconds_per_byte, slower)->second;
  return std::ranges::find_if(seconds_per_byte,
                              [&](const auto& each) { return each.second <= enough; })
      ->first;
}

std::int64_t usual_bucket(const StoreOptions& options, int ranks, std::string_view device_kind) {
  if (options.none || options.path == "none" || !std::filesystem::exists(options.path)) {
    return unmeasured_bucket(device_kind);
  }
  const Store store = Store::open_existing(options.path);
  const EnvironmentRecord here = environment_record(read_environment(), options.environment_label);
  return best_bucket(store.ceilings(here.key), ranks, device_kind);
}

std::int64_t usual_bucket(const StoreOptions& store, Ranks& ranks, std::string_view device_kind) {
  std::int64_t bytes = 0;
  if (ranks.first()) {
    try {
      bytes = usual_bucket(store, ranks.size(), device_kind);
    } catch (const Error&) {
      bytes = unmeasured_bucket(device_kind);  // a store that cannot be read is told later
    }
  }
  ranks.all_reduce({&bytes, 1}, Ranks::Reduction::maximum);
  return bytes;
}

}  // namespace ridgeline
