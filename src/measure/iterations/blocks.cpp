#include "measure/iterations/blocks.h"

#include <algorithm>
#include <cmath>

#include "data/dataset.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kShortestTurn = 2, kLongestTurn = 100;

std::vector<std::int32_t> permutation(std::size_t size, std::uint64_t seed, std::uint64_t number) {
  std::vector<std::int32_t> order(size);
  shuffled_order(order, seed, number);
  return order;
}

}  // namespace

std::vector<std::size_t> BlockOrder::order(std::int64_t block) const {
  const std::size_t square = static_cast<std::size_t>(block) / candidates_;
  const std::size_t row = static_cast<std::size_t>(block) % candidates_;
  // A square of rotations of one permutation has every candidate at every place; its rows come in
  // random order too.
  const auto places = permutation(candidates_, seed_, 2 * square);
  const auto rotations = permutation(candidates_, seed_, 2 * square + 1);
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < candidates_; ++i) {
    const std::size_t place = (i + static_cast<std::size_t>(rotations[row])) % candidates_;
    result.push_back(static_cast<std::size_t>(places[place]));
  }
  return result;
}

std::int64_t turn_length(double seconds_per_iteration, double turn_seconds) {
  if (!(seconds_per_iteration > 0.0)) return kLongestTurn;
  const double fitting = turn_seconds / seconds_per_iteration;
  return std::clamp(static_cast<std::int64_t>(std::min(fitting, 1e6)), kShortestTurn, kLongestTurn);
}

}  // namespace ridgeline
