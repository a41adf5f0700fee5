#pragma once

// How channels are cut into vectors and panels, and what of a problem is held in which cache.

#include <algorithm>
#include <cstdint>

namespace ridgeline::native::conv {

// Half of a first-level cache of 48 KiB, three quarters of one of 32: what a panel of packed
// weights (or of diff_dst) may take so that it stays there while pixels stream past.
inline constexpr std::int64_t kPanelFloats = 24 * 1024 / 4;
// What the src and dst of a band may take of a second-level cache that weights pass through.
inline constexpr std::int64_t kBandFloats = 128 * 1024 / 4;

// A stretch of the depth of a register tile (conv_tile-inl.h) along which the rows advance evenly:
// `count` steps, the rows from offset `rows` on, the vectors from offset `vectors` on.
struct Run {
  std::int64_t rows = 0, vectors = 0, count = 0;
};

// The channels of one group as panels of up to max_vectors vectors, as even as possible.
struct Panels {
  std::int64_t channels = 0, lanes = 0, vectors = 0, count = 0;

  [[nodiscard]] std::int64_t first_vector(std::int64_t panel) const {
    const std::int64_t base = vectors / count, rest = vectors % count;
    return panel * base + std::min(panel, rest);
  }
  [[nodiscard]] std::int64_t vectors_of(std::int64_t panel) const {
    return first_vector(panel + 1) - first_vector(panel);
  }
  [[nodiscard]] std::int64_t widest() const { return (vectors + count - 1) / count; }
  [[nodiscard]] std::int64_t padded() const { return vectors * lanes; }
  // Lanes in use in the last vector of a panel.
  [[nodiscard]] std::int64_t tail_of(std::int64_t panel) const {
    return panel + 1 < count ? lanes : channels - (vectors - 1) * lanes;
  }
};

// `lanes`: of the widest vector. Few channels get narrower ones: eight would leave half of a wide
// vector empty, and sixteen as a single wide vector would need a load for every multiply-add.
[[nodiscard]] inline Panels make_panels(std::int64_t channels, std::int64_t lanes,
                                        std::int64_t max_vectors) {
  if (channels <= 16) lanes = std::min<std::int64_t>(lanes, 8);
  const std::int64_t vectors = (channels + lanes - 1) / lanes;
  return {channels, lanes, vectors, (vectors + max_vectors - 1) / max_vectors};
}

// The same for the vectors of this machine.
[[nodiscard]] Panels panels_for(std::int64_t channels);

}  // namespace ridgeline::native::conv
