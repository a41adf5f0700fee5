#pragma once

// Iterations before the measured ones: a fixed number, or until they have become steady.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace ridgeline {

struct WarmupRule {
  std::optional<std::int64_t> iterations;  // a fixed number; nothing: until steady
  std::int64_t max_samples = 200;          // patience, where they do not become steady
  double max_seconds = 20.0;
};

// Throws bad_input for settings that allow no warm-up.
void check(const WarmupRule& rule);

// Watches the warm-up of one candidate.
class Warmup {
 public:
  explicit Warmup(const WarmupRule& rule);
  void add(double seconds);
  [[nodiscard]] bool done() const { return done_; }
  // Iterations before it is worth asking again.
  [[nodiscard]] std::int64_t next_count() const;
  // Why it ended: "10 iterations, as asked for", "steady", "not steady after 200 iterations".
  [[nodiscard]] std::string text() const;

 private:
  WarmupRule rule_;
  std::vector<double> seconds_;
  double total_ = 0.0;
  bool done_ = false, steady_ = false;
};

}  // namespace ridgeline
