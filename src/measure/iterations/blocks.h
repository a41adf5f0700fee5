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

// Seconds of a turn. Where others take turns too it is short: a machine whose speed changes within
// tenths of a second then meets all of them, and there are many blocks. One alone has no need of
// that. Nor have steps whose loader goes on filling its buffers during the turns of others: those
// must be emptied before waiting for data shows.
inline constexpr double kSharedTurnSeconds = 0.02, kLoneTurnSeconds = 0.2;
// Its iterations, from 2 to 100.
[[nodiscard]] std::int64_t turn_length(double seconds_per_iteration, double turn_seconds);

// Where the number of iterations is told: so many a turn, fewer where they take long.
inline constexpr std::int64_t kFixedTurn = 10;
inline constexpr double kFixedTurnSeconds = 0.1;

// A turn begins with an iteration that does not count, since others have used the caches, unless an
// iteration takes so long that filling them again is nothing.
inline constexpr double kColdMatters = 0.5;

inline constexpr std::int64_t kQueued = 10;  // iterations that are queued at once

}  // namespace ridgeline
