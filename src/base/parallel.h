#pragma once

// The project's one way to use several cores: OpenMP, whose threads oneDNN shares; plain threads in
// the ThreadSanitizer build, where GCC's OpenMP runtime raises false alarms.

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>

#ifdef RIDGELINE_STD_THREADS
#include <functional>
#else
#include <omp.h>
#endif

namespace ridgeline {

// Threads used from now on; 0 means one per available core.
void set_thread_count(int threads);
[[nodiscard]] int thread_count();

// Told by each thread when its part of a parallel region begins and ends.
class ParallelObserver {
 public:
  virtual ~ParallelObserver() = default;
  virtual void begin(int thread, int threads) noexcept = 0;
  virtual void end(int thread) noexcept = 0;
};

// Who watches the regions that this thread starts; normally none. Other threads start regions of
// their own, and theirs are not watched with ours.
inline constinit thread_local ParallelObserver* parallel_observer = nullptr;

#ifdef RIDGELINE_STD_THREADS
void run_on_threads(int threads, const std::function<void(int, int)>& body);
#endif

// The first exception of a parallel region, which could not leave its thread by itself.
class ParallelFailure {
 public:
  void keep() noexcept {
    if (!taken_.exchange(true)) first_ = std::current_exception();
  }
  void rethrow() const {
    if (first_) [[unlikely]]
      std::rethrow_exception(first_);
  }

 private:
  std::atomic<bool> taken_ = false;
  std::exception_ptr first_;
};

// Calls body(thread, threads) once on each of thread_count() threads. What one of them throws is
// thrown when all have ended.
template <typename Body>
void parallel(Body&& body) {
  ParallelObserver* const observer = parallel_observer;
  ParallelFailure failure;
  // One place that calls the body, watched or not, so that it is compiled once.
  const auto part = [&](int thread, int threads) {
    if (observer != nullptr) [[unlikely]]
      observer->begin(thread, threads);
    try {
      body(thread, threads);
    } catch (...) {
      failure.keep();
    }
    if (observer != nullptr) [[unlikely]]
      observer->end(thread);
  };
#ifdef RIDGELINE_STD_THREADS
  run_on_threads(thread_count(), part);
#else
#pragma omp parallel num_threads(thread_count())
  part(omp_get_thread_num(), omp_get_num_threads());
#endif
  failure.rethrow();
}

struct Range {
  std::int64_t begin = 0, end = 0;
};

// The part of [0, count) that falls to one thread: contiguous, as even as possible, the same for
// every call, so that results do not depend on timing.
[[nodiscard]] inline Range share_of(std::int64_t count, int thread, int threads) {
  const std::int64_t base = count / threads, rest = count % threads;
  const std::int64_t begin = thread * base + std::min<std::int64_t>(thread, rest);
  return {begin, begin + base + (thread < rest ? 1 : 0)};
}

// Calls body(begin, end) on disjoint ranges covering [0, count). Runs in the calling thread when
// there are fewer than `grain` items to a thread.
template <typename Body>
void parallel_for(std::int64_t count, std::int64_t grain, Body&& body) {
  if (count <= grain || thread_count() == 1) {
    if (count > 0) body(std::int64_t{0}, count);
    return;
  }
  parallel([&](int thread, int threads) {
    const Range range = share_of(count, thread, threads);
    if (range.begin < range.end) body(range.begin, range.end);
  });
}

}  // namespace ridgeline
