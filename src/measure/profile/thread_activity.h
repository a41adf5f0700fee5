#pragma once

// What each thread does of the project's own parallel regions while steps run. Libraries that run
// their own threads (oneDNN) are not seen here.

#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "measure/profile/profile.h"

namespace ridgeline {

// Watches the regions that the constructing thread starts, while it lives. Threads write into
// memory of their own that is there before the first region.
class ThreadActivity final : public ParallelObserver {
 public:
  using Clock = std::chrono::steady_clock;
  struct Body {
    std::int64_t step = -1;
    int thread = 0;
    Clock::time_point begin, end;
  };

  // `capacity`: bodies of a thread between two calls of take().
  explicit ThreadActivity(int threads, std::size_t capacity = std::size_t{1} << 15);
  ~ThreadActivity() override;
  ThreadActivity(const ThreadActivity&) = delete;
  ThreadActivity& operator=(const ThreadActivity&) = delete;

  // Between regions: the step that the next ones belong to.
  void set_step(std::int64_t step) { step_ = step; }
  // Between regions: what was seen since the last call, thread by thread.
  [[nodiscard]] std::vector<Body> take();
  // Bodies for which there was no room.
  [[nodiscard]] std::int64_t lost() const;

  void begin(int thread, int threads) noexcept override;
  void end(int thread) noexcept override;

 private:
  struct alignas(64) Lane {
    std::vector<Body> bodies;
    Clock::time_point begin;
    std::int64_t lost = 0;
  };
  std::vector<Lane> lanes_;
  std::int64_t step_ = -1;
  std::int64_t unexpected_ =
      0;  // of threads beyond those that were announced; only the first tells
  ParallelObserver* before_;
};

// How evenly the threads of a step's regions work.
struct ThreadBalance {
  std::int64_t threads = 0, bodies = 0;
  double longest = 0.0, mean = 0.0;  // busy seconds of a thread, all iterations

  // 1: all threads are busy for the same time; 2 with two threads: one of them does nothing.
  [[nodiscard]] std::optional<double> imbalance() const {
    return mean > 0.0 ? std::optional(longest / mean) : std::nullopt;
  }
};
// One for each step of the plan; no threads where no region of ours was seen.
[[nodiscard]] std::vector<ThreadBalance> balance_of(std::span<const ProfileEvent> events,
                                                    std::size_t steps);

}  // namespace ridgeline
