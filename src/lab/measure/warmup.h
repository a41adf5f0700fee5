#pragma once

// Iterations before the measured ones: a fixed number, or until they have become steady.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "lab/stats/stopping.h"

namespace ridgeline {

struct WarmupPlan {
  std::optional<std::int64_t> iterations;  // a fixed number; nothing: until steady
  WarmupRule rule = {};
};

// Throws bad_input for what nobody can warm up by.
void check(const WarmupPlan& plan);

// Watches the warm-up of one candidate.
class Warmup {
 public:
  explicit Warmup(const WarmupPlan& plan);
  void add(double seconds);
  [[nodiscard]] bool done() const { return done_; }
  // Iterations before it is worth asking again.
  [[nodiscard]] std::int64_t next_count() const;
  // Why it ended: "10 iterations, as asked for", "steady: …".
  [[nodiscard]] std::string text() const;

 private:
  WarmupPlan plan_;
  std::vector<double> seconds_;
  double total_ = 0.0;
  WarmupDecision decision_;
  bool done_ = false;
};

}  // namespace ridgeline
