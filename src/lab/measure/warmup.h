#pragma once

// Iterations before the measured ones: a fixed number, or until they have become steady.

#include <cstdint>
#include <optional>
#include <vector>

namespace ridgeline {

struct WarmupRule {
  std::optional<std::int64_t> iterations;  // a fixed number; the rest then does not count
  std::int64_t most_iterations = 200;
  double most_seconds = 10.0;  // a few iterations all the same
};

// Throws bad_input for what nobody can warm up by.
void check(const WarmupRule& rule);

// Watches the warm-up of one candidate.
class Warmup {
 public:
  explicit Warmup(const WarmupRule& rule);
  void add(double seconds);
  // Iterations before it is worth asking again whether it is done.
  [[nodiscard]] std::int64_t next_count() const;
  [[nodiscard]] bool done() const { return done_; }
  // Ended because of steadiness, or because the number was told; not because patience ended.
  [[nodiscard]] bool steady() const { return steady_; }

 private:
  WarmupRule rule_;
  std::vector<double> seconds_;
  double total_ = 0.0;
  bool done_ = false, steady_ = true;
};

}  // namespace ridgeline
