#pragma once

// How many bytes of gradients travel between ranks together, where no option says it.

#include <cstdint>
#include <span>
#include <string_view>

#include "lab/store_options.h"
#include "ranks/ranks.h"
#include "store/records.h"

namespace ridgeline {

// The smallest bucket whose exchange takes at most a tenth more time for each byte than the best
// one's, by the measured links: larger ones gain little and leave more to wait for in the end.
[[nodiscard]] std::int64_t best_bucket(std::span<const Ceiling> ceilings, int ranks,
                                       std::string_view device_kind);
// Where the links between so many ranks were not measured.
[[nodiscard]] std::int64_t unmeasured_bucket(std::string_view device_kind);

// By this machine's ceilings in the store. The same store gives the same bucket.
[[nodiscard]] std::int64_t usual_bucket(const StoreOptions& store, int ranks,
                                        std::string_view device_kind);
// The same for ranks, of which the first looks it up for all. All of them call it.
[[nodiscard]] std::int64_t usual_bucket(const StoreOptions& store, Ranks& ranks,
                                        std::string_view device_kind);

}  // namespace ridgeline
