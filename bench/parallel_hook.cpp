// What does the place for an observer in parallel() cost without an observer? Regions with an empty
// body, through parallel() and by OpenMP alone, in turns.
//
//   parallel_hook                       nanoseconds a region, with 1 thread and with all
//   parallel_hook bare|hooked REGIONS   one of them, so often, on 1 thread: for counting
//   instructions,
//       valgrind --tool=callgrind build/bench/parallel_hook hooked 1000000
//     less the same with bare, over the regions.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "analysis/stats/summary.h"
#include "base/error.h"
#include "base/parallel.h"

namespace ridgeline {
namespace {

using Clock = std::chrono::steady_clock;

// Kept from the optimiser.
volatile int sink = 0;

[[gnu::noinline]] void bare() {
#pragma omp parallel num_threads(thread_count())
  if (omp_get_thread_num() == omp_get_num_threads()) sink = 1;
}

[[gnu::noinline]] void hooked() {
  parallel([](int thread, int threads) {
    if (thread == threads) sink = 1;
  });
}

template <typename Region>
double nanoseconds(Region region, int regions) {
  const Clock::time_point start = Clock::now();
  for (int i = 0; i < regions; ++i) region();
  return std::chrono::duration<double, std::nano>(Clock::now() - start).count() / regions;
}

void print_threads(int threads) {
  set_thread_count(threads);
  constexpr int kRounds = 201, kRegions = 2000;
  std::vector<double> without, with, difference;
  for (int round = 0; round < kRounds; ++round) {
    const bool first = round % 2 == 0;
    const double early = first ? nanoseconds(bare, kRegions) : nanoseconds(hooked, kRegions);
    const double late = first ? nanoseconds(hooked, kRegions) : nanoseconds(bare, kRegions);
    without.push_back(first ? early : late);
    with.push_back(first ? late : early);
    difference.push_back(with.back() - without.back());
  }
  fmt::print(
      "{} thread{}: {:.1f} ns a region by OpenMP alone, {:.1f} ns through parallel(); difference "
      "in turns {:+.1f} ns\n",
      threads, threads == 1 ? "" : "s", median_of(without), median_of(with), median_of(difference));
}

int run(int argc, char** argv) {
  if (argc == 1) {
    const int all = thread_count();
    print_threads(1);
    if (all > 1) print_threads(all);
    return 0;
  }
  const std::string which = argv[1];
  if (argc != 3 || (which != "bare" && which != "hooked")) {
    std::fprintf(stderr, "usage: parallel_hook [bare|hooked REGIONS]\n");
    return 2;
  }
  set_thread_count(1);
  const int regions = std::atoi(argv[2]);
  (void)(which == "bare" ? nanoseconds(bare, regions) : nanoseconds(hooked, regions));
  return 0;
}

}  // namespace
}  // namespace ridgeline

int main(int argc, char** argv) { return ridgeline::run(argc, argv); }
