#include "base/parallel.h"

#include <vector>

#ifdef RIDGELINE_STD_THREADS
#include <thread>
#endif

namespace ridgeline {
namespace {

int available_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

int& threads_in_use() {
  static int threads = available_cores();
  return threads;
}

}  // namespace

void set_thread_count(int threads) {
  threads_in_use() = threads > 0 ? threads : available_cores();
#ifndef RIDGELINE_STD_THREADS
  omp_set_num_threads(threads_in_use());
#endif
}

int thread_count() { return threads_in_use(); }

PinnedThreads::PinnedThreads() {
  CPU_ZERO(&before_);
  if (sched_getaffinity(0, sizeof(before_), &before_) != 0) return;
  std::vector<int> processors;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &before_)) processors.push_back(cpu);
  }
  if (processors.empty()) return;
  pinned_ = true;
  parallel([&](int thread, int) {
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(processors[static_cast<std::size_t>(thread) % processors.size()], &own);
    (void)sched_setaffinity(0, sizeof(own), &own);
  });
}

PinnedThreads::~PinnedThreads() {
  if (!pinned_) return;
  parallel([&](int, int) { (void)sched_setaffinity(0, sizeof(before_), &before_); });
}

void spread_threads() {
  if (thread_count() == 1 || thread_count() != available_cores()) return;
  const PinnedThreads moved;
}

#ifdef RIDGELINE_STD_THREADS
void run_on_threads(int threads, const std::function<void(int, int)>& body) {
  std::vector<std::jthread> workers;
  for (int thread = 1; thread < threads; ++thread) {
    workers.emplace_back([&body, thread, threads] { body(thread, threads); });
  }
  body(0, threads);
}
#endif

}  // namespace ridgeline
