#include "train/metrics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace ridgeline {

ConfusionMatrix::ConfusionMatrix(std::int64_t classes)
    : classes_(classes), counts_(static_cast<std::size_t>(classes * classes)) {}

void ConfusionMatrix::add(std::span<const double> logits, std::span<const std::int32_t> labels) {
  const auto classes = static_cast<std::size_t>(classes_);
  ensure(logits.size() >= labels.size() * classes, "fewer rows of logits than labels");
  for (std::size_t row = 0; row < labels.size(); ++row) {
    const auto scores = logits.subspan(row * classes, classes);
    const auto best = std::max_element(scores.begin(), scores.end());
    ++counts_[static_cast<std::size_t>(labels[row]) * classes +
              static_cast<std::size_t>(best - scores.begin())];
  }
}

std::int64_t ConfusionMatrix::total() const {
  return std::accumulate(counts_.begin(), counts_.end(), std::int64_t{0});
}

std::int64_t ConfusionMatrix::support(std::int64_t label) const {
  std::int64_t sum = 0;
  for (std::int64_t p = 0; p < classes_; ++p) sum += count(label, p);
  return sum;
}

std::int64_t ConfusionMatrix::predicted(std::int64_t label) const {
  std::int64_t sum = 0;
  for (std::int64_t t = 0; t < classes_; ++t) sum += count(t, label);
  return sum;
}

std::optional<double> ConfusionMatrix::precision(std::int64_t label) const {
  const std::int64_t all = predicted(label);
  if (all == 0) return std::nullopt;
  return static_cast<double>(count(label, label)) / static_cast<double>(all);
}

std::optional<double> ConfusionMatrix::recall(std::int64_t label) const {
  const std::int64_t all = support(label);
  if (all == 0) return std::nullopt;
  return static_cast<double>(count(label, label)) / static_cast<double>(all);
}

double majority_share(std::span<const std::int32_t> labels, std::int64_t classes) {
  if (labels.empty()) return 0.0;
  std::vector<std::int64_t> counts(static_cast<std::size_t>(classes));
  for (const std::int32_t label : labels) ++counts[static_cast<std::size_t>(label)];
  return static_cast<double>(*std::max_element(counts.begin(), counts.end())) /
         static_cast<double>(labels.size());
}

bool at_chance(double accuracy, double chance, std::int64_t samples) {
  const double deviation =
      std::sqrt(chance * (1.0 - chance) / static_cast<double>(std::max<std::int64_t>(samples, 1)));
  const double limit = chance + 3.0 * deviation;
  return limit < 1.0 && accuracy <= limit;
}

}  // namespace ridgeline
