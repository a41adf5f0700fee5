#include "measure/ceilings/cpu_levels.h"

#include <algorithm>

#include "base/error.h"

namespace ridgeline::ceilings {
namespace {

// Instances of a cache that so many threads, one on each processor, can use.
std::int64_t instances_of(const CacheInfo& cache, int threads) {
  const int shared_by = std::max(cache.shared_by, 1);
  return (threads + shared_by - 1) / shared_by;
}

}  // namespace

std::vector<MemoryLevel> memory_levels(const Environment& env, int threads,
                                       std::int64_t memory_bytes) {
  std::vector<CacheInfo> caches;
  for (const CacheInfo& cache : env.caches) {
    if (cache.type != "instruction" && cache.bytes > 0) caches.push_back(cache);
  }
  std::sort(caches.begin(), caches.end(),
            [](const CacheInfo& x, const CacheInfo& y) { return x.level < y.level; });
  std::vector<MemoryLevel> levels;
  std::int64_t below = 0, last = 0;  // one thread's share of the level before; all of the last one
  for (const CacheInfo& cache : caches) {
    const std::int64_t total = instances_of(cache, threads) * cache.bytes;
    const std::int64_t share = total / threads;
    MemoryLevel level{.name = fmt::format("L{}", cache.level), .capacity = total, .sets = {}};
    // Half of it leaves room for whatever else is there. A cache that others share with us may not
    // give us half: a quarter and an eighth are tried too, as long as the level below cannot hold
    // them.
    for (const std::int64_t part : {2, 4, 8}) {
      if (part == 2 || share / part > 2 * below) level.sets.push_back(share / part);
    }
    levels.push_back(std::move(level));
    below = share;
    last = std::max(last, total);
  }
  constexpr std::int64_t kUnknownCache = std::int64_t{64} << 20;
  constexpr int kTimesTheCache = 4, kShareOfMemory = 4;
  std::int64_t bytes = memory_bytes > 0
                           ? memory_bytes
                           : kTimesTheCache * std::max(last, kUnknownCache / kTimesTheCache);
  if (env.available_bytes > 0) bytes = std::min(bytes, env.available_bytes / kShareOfMemory);
  levels.push_back({.name = "memory", .capacity = env.memory_bytes, .sets = {bytes / threads}});
  return levels;
}

}  // namespace ridgeline::ceilings
