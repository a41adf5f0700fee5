#pragma once

// Candidates take turns of a few iterations. A block is one turn of each, in random order, so that
// a change of the machine's speed meets all of them.

#include <cstdint>
#include <vector>

namespace ridgeline {

// The order of the turns in each block: a function of the seed alone, and balanced. In every
// `candidates` blocks in a row (from a multiple of it) each candidate has each place once.
class BlockOrder {
 public:
  BlockOrder(std::size_t candidates, std::uint64_t seed) : candidates_(candidates), seed_(seed) {}
  [[nodiscard]] std::vector<std::size_t> order(std::int64_t block) const;

 private:
  std::size_t candidates_;
  std::uint64_t seed_;
};

// Iterations of a turn where their number is told, and where it is free: long enough that what
// comes between turns hardly counts, short enough that there are many of them.
inline constexpr std::int64_t kFixedTurn = 10;
[[nodiscard]] std::int64_t turn_length(double seconds_per_iteration);

}  // namespace ridgeline
