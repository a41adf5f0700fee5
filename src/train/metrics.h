#pragma once

// What an evaluation says about a classifier beyond one number.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace ridgeline {

// Counts of (true class, predicted class).
class ConfusionMatrix {
 public:
  explicit ConfusionMatrix(std::int64_t classes);

  // Rows of logits, one row for each label; the largest logit is the prediction, the first of
  // equals.
  void add(std::span<const double> logits, std::span<const std::int32_t> labels);

  [[nodiscard]] std::int64_t classes() const { return classes_; }
  [[nodiscard]] std::int64_t count(std::int64_t label, std::int64_t predicted) const {
    return counts_[static_cast<std::size_t>(label * classes_ + predicted)];
  }
  // All of them, to be joined with others'.
  [[nodiscard]] std::span<std::int64_t> counts() { return counts_; }
  [[nodiscard]] std::int64_t total() const;
  [[nodiscard]] std::int64_t support(std::int64_t label) const;    // samples of a class
  [[nodiscard]] std::int64_t predicted(std::int64_t label) const;  // predictions of a class
  // Of the samples predicted as a class, the share that is right; nothing when there are none.
  [[nodiscard]] std::optional<double> precision(std::int64_t label) const;
  // Of the samples of a class, the share found; nothing when there are none.
  [[nodiscard]] std::optional<double> recall(std::int64_t label) const;

 private:
  std::int64_t classes_;
  std::vector<std::int64_t> counts_;
};

struct Evaluation {
  double loss = 0.0, accuracy = 0.0, top5 = 0.0;
  std::int64_t samples = 0;
  double seconds = 0.0;
};

// The accuracy that a classifier reaches without looking: the share of the most frequent class.
[[nodiscard]] double majority_share(std::span<const std::int32_t> labels, std::int64_t classes);

// Whether an accuracy over `samples` is no better than `chance` by more than three deviations of
// what guessing would scatter.
[[nodiscard]] bool at_chance(double accuracy, double chance, std::int64_t samples);

}  // namespace ridgeline
