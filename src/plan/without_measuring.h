#pragma once

namespace ridgeline {

// While one lives, this thread makes plans that are only looked at, or run too seldom to be worth
// much thought: a library that would measure its kernels takes its own first proposal.
class WithoutMeasuring {
 public:
  WithoutMeasuring() { ++depth_; }
  ~WithoutMeasuring() { --depth_; }
  WithoutMeasuring(const WithoutMeasuring&) = delete;
  WithoutMeasuring& operator=(const WithoutMeasuring&) = delete;

  [[nodiscard]] static bool active() { return depth_ > 0; }

 private:
  static inline thread_local int depth_ = 0;
};

}  // namespace ridgeline
