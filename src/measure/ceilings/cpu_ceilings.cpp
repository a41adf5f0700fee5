// The ceilings of the CPU: arithmetic by instruction set, bandwidth by memory level, on one core
// and on all.

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <thread>

#include "analysis/stats/summary.h"
#include "base/error.h"
#include "base/parallel.h"
#include "measure/ceilings/ceilings.h"
#include "measure/ceilings/cpu_levels.h"
#include "measure/ceilings/cpu_loops.h"
#include "measure/ceilings/hardware.h"

namespace ridgeline::ceilings {
namespace {

// All cores whatever --threads says, one where one is asked for; as before at the end.
class ThreadCount {
 public:
  explicit ThreadCount(int threads) : before_(thread_count()) { set_thread_count(threads); }
  ~ThreadCount() { set_thread_count(before_); }
  ThreadCount(const ThreadCount&) = delete;
  ThreadCount& operator=(const ThreadCount&) = delete;

 private:
  int before_;
};

// So many threads, each on a processor of its own: on a busy machine the system would let some
// share one, and clocks and first-touched memory belong to a place. Undone at the end.
class PinnedThreads {
 public:
  explicit PinnedThreads(int threads) : count_(threads) {
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
  ~PinnedThreads() {
    if (!pinned_) return;
    parallel([&](int, int) { (void)sched_setaffinity(0, sizeof(before_), &before_); });
  }
  PinnedThreads(const PinnedThreads&) = delete;
  PinnedThreads& operator=(const PinnedThreads&) = delete;

 private:
  ThreadCount count_;
  cpu_set_t before_{};
  bool pinned_ = false;
};

struct Scope {
  const char* name;
  int threads;
};

// Memory that lies in large pages where the system has them: the time of page walks is not the
// memory's.
class Pages {
 public:
  explicit Pages(std::size_t bytes) : bytes_(bytes) {
    data_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (data_ == MAP_FAILED) fail("no {} bytes of memory to measure its bandwidth with", bytes);
    (void)madvise(data_, bytes, MADV_HUGEPAGE);
  }
  ~Pages() { (void)munmap(data_, bytes_); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] std::byte* data() const { return static_cast<std::byte*>(data_); }

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// Runs body(thread) on all threads; seconds from when all are there until the last is done.
template <typename Body>
double seconds_on_threads(Body&& body) {
  const auto count = static_cast<std::size_t>(thread_count());
  std::vector<double> begins(count, std::numeric_limits<double>::infinity()), ends(count, 0.0);
  std::atomic<int> arrived{0};
  parallel([&](int thread, int threads) {
    ++arrived;
    while (arrived < threads) std::this_thread::yield();
    begins[static_cast<std::size_t>(thread)] = now();
    body(thread);
    ends[static_cast<std::size_t>(thread)] = now();
  });
  return *std::max_element(ends.begin(), ends.end()) -
         *std::min_element(begins.begin(), begins.end());
}

// How many turns take `seconds`. run(turns) runs them on all threads and gives the seconds.
template <typename Run>
std::int64_t turns_for(double seconds, Run&& run) {
  (void)run(1);  // first touches
  for (std::int64_t turns = 1;; turns *= 4) {
    const double taken = run(turns);
    if (taken >= seconds / 4 || turns > (std::int64_t{1} << 40)) {
      return std::max<std::int64_t>(
          1, static_cast<std::int64_t>(std::ceil(static_cast<double>(turns) * seconds / taken)));
    }
  }
}

// The mean over the threads.
double mhz_of_threads() {
  std::vector<double> clocks(static_cast<std::size_t>(thread_count()), 0.0);
  parallel([&](int thread, int) { clocks[static_cast<std::size_t>(thread)] = effective_mhz(); });
  double sum = 0.0;
  for (const double mhz : clocks) sum += mhz;
  return sum / static_cast<double>(clocks.size());
}

// Times run(turns) again and again, and the clock right after each; `amount` is what a turn does.
template <typename Run>
void repeat(Ceiling& ceiling, int repeats, std::int64_t turns, double amount, Run&& run) {
  std::vector<double> rates, clocks;
  clocks.push_back(mhz_of_threads());
  constexpr int kFewest = 5;
  constexpr double kEnough = 0.25;  // seconds in all
  double spent = 0.0;
  for (int i = 0; i < repeats && (i < kFewest || spent < kEnough); ++i) {
    const double seconds = run(turns);
    rates.push_back(amount * static_cast<double>(turns) / seconds);
    spent += seconds;
    clocks.push_back(mhz_of_threads());
  }
  set_values(ceiling, rates);
  ceiling.clock_mhz = median_interval(clocks).median;
}

Ceiling measure_fma(const FmaLoop& loop, const Scope& scope, const CeilingEffort& effort) {
  Ceiling ceiling = ceiling_named("cpu", "compute", loop.dtype, loop.path, scope.name, "FLOP/s");
  const PinnedThreads threads(scope.threads);
  const auto run = [&](std::int64_t rounds) {
    return seconds_on_threads([&](int) {
      volatile double result = loop.run(rounds);
      (void)result;
    });
  };
  const std::int64_t rounds = turns_for(effort.repeat_seconds, run);
  repeat(ceiling, effort.repeats, rounds, loop.flops_per_round * scope.threads, run);
  return ceiling;
}

// Three arrays for each thread, which lies on its own pages.
class ArraysOfThreads {
 public:
  ArraysOfThreads(int threads, std::int64_t set_bytes)
      : part_(round_up(set_bytes + 3 * (kAliasing + kApart), kPage)),
        pages_(static_cast<std::size_t>(part_ * threads + kPage)) {}

  // Of a working set of `set_bytes`, when `used` of the three are touched.
  [[nodiscard]] StreamArrays of(int thread, std::int64_t set_bytes, int used) const {
    const std::int64_t count =
        std::max<std::int64_t>(1, set_bytes / used / kFloat / kStreamStep) * kStreamStep;
    auto* base = reinterpret_cast<float*>(pages_.data() + part_ * thread);
    // Equal low bits of addresses that are read and written together would make loads wait for
    // stores that they do not depend on.
    const std::int64_t step = round_up(count * kFloat, kAliasing) + kApart;
    StreamArrays arrays{.a = base, .b = base, .c = base, .count = count};
    if (used > 1) arrays.b = base + step / kFloat;
    if (used > 2) arrays.c = base + 2 * step / kFloat;
    return arrays;
  }

 private:
  static constexpr std::int64_t kFloat = sizeof(float);
  static constexpr std::int64_t kPage = std::int64_t{2} << 20;
  static constexpr std::int64_t kAliasing = 4096, kApart = 1024 + 2 * kAliasing;
  static std::int64_t round_up(std::int64_t bytes, std::int64_t multiple) {
    return (bytes + multiple - 1) / multiple * multiple;
  }

  std::int64_t part_;
  Pages pages_;
};

// One way to make a pass over one working set.
struct StreamTrial {
  const StreamLoop* loop = nullptr;
  std::int64_t set_bytes = 0;
};

class StreamMeasurement {
 public:
  StreamMeasurement(const std::vector<StreamLoop>& loops, const MemoryLevel& level,
                    const Scope& scope, const CeilingEffort& effort)
      : loops_(loops),
        level_(level),
        scope_(scope),
        effort_(effort),
        arrays_(scope.threads, level.sets.front()) {
    // Every page is touched by the thread that will use it.
    const PinnedThreads threads(scope_.threads);
    parallel([&](int thread, int) {
      const StreamArrays own = arrays_.of(thread, level_.sets.front(), 1);
      std::fill(own.a, own.a + own.count, 1.0F);
    });
  }

  Ceiling measure(const std::string& path) {
    Ceiling ceiling = ceiling_named("cpu", "bandwidth", level_.name, path, scope_.name, "B/s");
    ceiling.capacity_bytes = level_.capacity;
    const PinnedThreads threads(scope_.threads);
    const std::vector<StreamTrial> trials = trials_of(path);
    const StreamTrial* fastest = &trials.front();
    std::int64_t passes = 1;
    double best = 0.0;
    // A roof is what the best way reaches: each is tried, the fastest is measured.
    for (const StreamTrial& trial : trials) {
      const auto run = [&](std::int64_t n) { return run_trial(trial, n); };
      const std::int64_t needed = turns_for(effort_.repeat_seconds, run);
      double rate = 0.0;
      for (int i = 0; i < (trials.size() > 1 ? 2 : 0); ++i) {
        const double taken = run(needed);
        rate = std::max(rate, bytes_of(trial) * static_cast<double>(needed) / taken);
      }
      if (rate < best) continue;
      best = rate;
      fastest = &trial;
      passes = needed;
    }
    repeat(ceiling, effort_.repeats, passes, bytes_of(*fastest),
           [&](std::int64_t n) { return run_trial(*fastest, n); });
    return ceiling;
  }

 private:
  [[nodiscard]] std::vector<StreamTrial> trials_of(const std::string& path) const {
    const bool near = level_.name == "L1" || level_.name == "L2";
    std::vector<StreamTrial> trials;
    for (const StreamLoop& loop : loops_) {
      if (loop.path != path || (loop.for_memory && near)) continue;
      for (const std::int64_t bytes : level_.sets) {
        // Stores past the caches have nothing to gain from a smaller part of one.
        if (loop.for_memory && bytes != level_.sets.front()) continue;
        trials.push_back({&loop, bytes});
      }
    }
    return trials;
  }

  // Of one pass of all threads, read and written.
  [[nodiscard]] double bytes_of(const StreamTrial& trial) const {
    const StreamArrays arrays = arrays_.of(0, trial.set_bytes, trial.loop->arrays);
    return static_cast<double>(arrays.count) * sizeof(float) * trial.loop->arrays * scope_.threads;
  }

  [[nodiscard]] double run_trial(const StreamTrial& trial, std::int64_t passes) const {
    return seconds_on_threads([&](int thread) {
      trial.loop->run(arrays_.of(thread, trial.set_bytes, trial.loop->arrays), passes);
    });
  }

  const std::vector<StreamLoop>& loops_;
  const MemoryLevel& level_;
  Scope scope_;
  const CeilingEffort& effort_;
  ArraysOfThreads arrays_;
};

// From one parallel loop to the next with nothing in them: what a step costs on several threads
// whatever it computes.
Ceiling measure_fork_join(const Scope& scope, const CeilingEffort& effort) {
  Ceiling ceiling = ceiling_named("cpu", "latency", "fork-join", "", scope.name, "s");
  const ThreadCount threads(scope.threads);
  const auto run = [](std::int64_t turns) {
    const double begin = now();
    for (std::int64_t i = 0; i < turns; ++i) parallel([](int, int) {});
    return now() - begin;
  };
  const std::int64_t turns = turns_for(effort.repeat_seconds, run);
  std::vector<double> seconds;
  for (int i = 0; i < effort.repeats; ++i) {
    seconds.push_back(run(turns) / static_cast<double>(turns));
  }
  set_values(ceiling, seconds);
  return ceiling;
}

constexpr const char* kPaths[] = {"read", "write", "copy", "triad"};

}  // namespace

std::vector<Ceiling> measure_cpu(const CeilingProgress& progress, const CeilingEffort& effort) {
  const Environment env = read_environment();
  const ThreadCount all(0);
  const std::vector<Scope> scopes = {{"one core", 1}, {"all cores", thread_count()}};
  std::vector<FmaLoop> fmas = fma_loops();
  for (FmaLoop& loop : bf16_loops()) fmas.push_back(std::move(loop));
  const std::vector<StreamLoop> loops = stream_loops();
  const std::optional<KnownCpu> known = known_cpu(read_cpu_identity());
  const auto wanted = [&](const std::string& subject, const std::string& path) {
    return effort.only.empty() ||
           std::any_of(effort.only.begin(), effort.only.end(), [&](const Ceiling& ceiling) {
             return ceiling.subject == subject && ceiling.path == path;
           });
  };
  std::size_t total = 1;
  std::vector<std::vector<MemoryLevel>> levels;
  for (const Scope& scope : scopes) {
    for (const FmaLoop& loop : fmas) total += wanted(loop.dtype, loop.path) ? 1 : 0;
    levels.push_back(memory_levels(env, scope.threads, effort.memory_bytes));
    for (const MemoryLevel& level : levels.back()) {
      for (const char* path : kPaths) total += wanted(level.name, path) ? 1 : 0;
    }
  }
  std::vector<Ceiling> found;
  const auto announce = [&](const std::string& what) {
    if (progress) {
      progress(static_cast<std::int64_t>(found.size()), static_cast<std::int64_t>(total), what);
    }
  };
  for (const Scope& scope : scopes) {
    for (const FmaLoop& loop : fmas) {
      if (!wanted(loop.dtype, loop.path)) continue;
      announce(fmt::format("{} {} on {}", loop.path, loop.dtype, scope.name));
      found.push_back(measure_fma(loop, scope, effort));
      Ceiling& ceiling = found.back();
      if (known && loop.fused && loop.bits > 0 && loop.path != "scalar" && ceiling.clock_mhz) {
        const int cores = env.cores > 0 ? std::min(scope.threads, env.cores) : scope.threads;
        ceiling.datasheet =
            flops_per_cycle(*known, loop.bits, loop.dtype) * cores * *ceiling.clock_mhz * 1e6;
      }
    }
  }
  for (std::size_t s = 0; s < scopes.size(); ++s) {
    for (const MemoryLevel& level : levels[s]) {
      std::vector<std::string> paths;
      for (const char* path : kPaths) {
        if (wanted(level.name, path)) paths.push_back(path);
      }
      if (paths.empty()) continue;
      StreamMeasurement measurement(loops, level, scopes[s], effort);
      for (const std::string& path : paths) {
        announce(fmt::format("{} {} on {}", level.name, path, scopes[s].name));
        found.push_back(measurement.measure(path));
        if (known && level.name == "memory" && s == 1 && known->memory_bytes_per_second) {
          found.back().datasheet = *known->memory_bytes_per_second * std::max(env.sockets, 1);
        }
      }
    }
  }
  announce(fmt::format("fork-join on {}", scopes.back().name));
  found.push_back(measure_fork_join(scopes.back(), effort));
  return found;
}

}  // namespace ridgeline::ceilings
