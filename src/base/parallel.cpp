#include "base/parallel.h"

#include <sched.h>

#ifdef RIDGELINE_STD_THREADS
#include <thread>
#include <vector>
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
  // The threads begin now, before there is anything to clean up: OpenMP's runtime ends the program
  // when it gets no memory for them.
  parallel([](int, int) {});
#endif
}

int thread_count() { return threads_in_use(); }

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
