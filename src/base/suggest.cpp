#include "base/suggest.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <vector>

namespace ridgeline {
namespace {

bool same_letter(char a, char b) {
  const auto lower = [](char c) { return std::tolower(static_cast<unsigned char>(c)); };
  return lower(a) == lower(b);
}

// Insertions, deletions, replacements and swaps of neighbours, each counted once.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replace = last[j - 1] + (same_letter(a[i - 1], b[j - 1]) ? 0 : 1);
      row[j] = std::min({replace, last[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && same_letter(a[i - 1], b[j - 2]) && same_letter(a[i - 2], b[j - 1])) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    before.swap(last);
    last.swap(row);
  }
  return last[b.size()];
}

}  // namespace

std::optional<std::string_view> nearest(std::string_view name,
                                        std::span<const std::string_view> candidates) {
  std::optional<std::string_view> best;
  std::size_t best_distance = 0;
  for (const std::string_view candidate : candidates) {
    // "RTX 4099" is near "GeForce RTX 4090" as well.
    const std::size_t blank = candidate.find(' ');
    for (const std::string_view part : {candidate, candidate.substr(blank + 1)}) {
      const std::size_t distance = edit_distance(name, part);
      // Beyond a third of the letters it is another word, not a typing error.
      const std::size_t allowed = (std::max(name.size(), part.size()) + 2) / 3;
      if (distance <= allowed && (!best || distance < best_distance)) {
        best = candidate;
        best_distance = distance;
      }
    }
  }
  return best;
}

std::string did_you_mean(std::string_view name, std::span<const std::string_view> candidates) {
  const std::optional<std::string_view> guess = nearest(name, candidates);
  return guess ? fmt::format("; did you mean '{}'?", *guess) : std::string();
}

}  // namespace ridgeline
