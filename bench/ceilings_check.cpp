// The ceilings of the CPU beside an independent measurement: multiply-adds and a triad written here
// by hand, with the compiler's own vectors and threads of their own. Prints both and their ratio;
// the last line says whether all are within 10%.
//
//   build/bench/ceilings_check [FILE.json of `ridgeline env --measure --device cpu --json`]
//
// Without a file the ceilings are measured now.

#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "measure/ceilings/ceilings.h"
#include "measure/machine/environment.h"

namespace {

using ridgeline::Ceiling;

// Eight floats or four doubles, as GCC and clang know them; AVX2 and FMA are chosen below.
using Floats = float __attribute__((vector_size(32)));
using Doubles = double __attribute__((vector_size(32)));

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// The fastest of some repeats on `threads` threads, from when all are ready until the last is done.
template <typename Body>
double fastest_seconds(int threads, int repeats, Body&& body) {
  double best = 1e9;
  for (int repeat = 0; repeat < repeats; ++repeat) {
    std::atomic<int> waiting{threads};
    std::vector<double> ends(static_cast<std::size_t>(threads)), begins = ends;
    const auto work = [&](int thread) {
      // A processor for each, or a busy system would let two share one.
      cpu_set_t own;
      CPU_ZERO(&own);
      CPU_SET(thread, &own);
      if (threads > 1) (void)sched_setaffinity(0, sizeof(own), &own);
      --waiting;
      while (waiting > 0) std::this_thread::yield();
      begins[static_cast<std::size_t>(thread)] = now();
      body(thread);
      ends[static_cast<std::size_t>(thread)] = now();
    };
    std::vector<std::thread> others;
    for (int thread = 1; thread < threads; ++thread) others.emplace_back(work, thread);
    work(0);
    for (std::thread& other : others) other.join();
    best = std::min(best, *std::max_element(ends.begin(), ends.end()) -
                              *std::min_element(begins.begin(), begins.end()));
  }
  return best;
}

volatile float keep_float = 0.999F;
volatile double keep_double = 0.999;

#ifdef __x86_64__
__attribute__((target("avx2,fma"), noinline)) float multiply_add_floats(long rounds) {
  const Floats m = Floats{} + keep_float, t = Floats{} + 0.001F;
  Floats a = t, b = t + 1, c = t + 2, d = t + 3, e = t + 4, f = t + 5, g = t + 6, h = t + 7,
         i = t + 8, j = t + 9;
  for (long round = 0; round < rounds; ++round) {
    a = a * m + t, b = b * m + t, c = c * m + t, d = d * m + t, e = e * m + t;
    f = f * m + t, g = g * m + t, h = h * m + t, i = i * m + t, j = j * m + t;
  }
  const Floats sum = a + b + c + d + e + f + g + h + i + j;
  return sum[0] + sum[7];
}

__attribute__((target("avx2,fma"), noinline)) double multiply_add_doubles(long rounds) {
  const Doubles m = Doubles{} + keep_double, t = Doubles{} + 0.001;
  Doubles a = t, b = t + 1, c = t + 2, d = t + 3, e = t + 4, f = t + 5, g = t + 6, h = t + 7,
          i = t + 8, j = t + 9;
  for (long round = 0; round < rounds; ++round) {
    a = a * m + t, b = b * m + t, c = c * m + t, d = d * m + t, e = e * m + t;
    f = f * m + t, g = g * m + t, h = h * m + t, i = i * m + t, j = j * m + t;
  }
  const Doubles sum = a + b + c + d + e + f + g + h + i + j;
  return sum[0] + sum[3];
}

constexpr double kChains = 10.0;

double float_rate(int threads) {
  constexpr long kRounds = 500'000;
  const double seconds = fastest_seconds(
      threads, 100, [](int) { keep_float = multiply_add_floats(kRounds) > 0 ? 0.999F : 0.998F; });
  return threads * kRounds * kChains * 8 * 2 / seconds;
}

double double_rate(int threads) {
  constexpr long kRounds = 500'000;
  const double seconds = fastest_seconds(
      threads, 100, [](int) { keep_double = multiply_add_doubles(kRounds) > 0 ? 0.999 : 0.998; });
  return threads * kRounds * kChains * 4 * 2 / seconds;
}
#endif

// As STREAM writes it, on doubles; `nontemporal` stores as its compilers make them for memory.
void triad(double* a, const double* b, const double* c, long count) {
  const double scale = 0.5 + 0.0 * keep_double;
  for (long i = 0; i < count; ++i) a[i] = b[i] + scale * c[i];
}

#ifdef __x86_64__
void triad_past_caches(double* a, const double* b, const double* c, long count) {
  using Pair = double __attribute__((vector_size(16)));
  const double scale = 0.5 + 0.0 * keep_double;
  for (long i = 0; i < count; i += 2) {
    const Pair sum =
        *reinterpret_cast<const Pair*>(b + i) + scale * *reinterpret_cast<const Pair*>(c + i);
    __builtin_ia32_movntpd(a + i, sum);
  }
}
#endif

double triad_rate(int threads, long bytes) {
  const long count = bytes / 3 / 8 / threads / 64 * 64;
  struct Free {
    void operator()(double* data) const { std::free(data); }
  };
  std::vector<std::unique_ptr<double, Free>> arrays;
  for (int i = 0; i < 3 * threads; ++i) {
    // Large pages, where the system has them: page walks are not what a memory's rate is about.
    constexpr std::size_t kPage = std::size_t{2} << 20;
    const std::size_t size = (static_cast<std::size_t>(count) * 8 + kPage - 1) / kPage * kPage;
    arrays.emplace_back(static_cast<double*>(std::aligned_alloc(kPage, size)));
    (void)madvise(arrays.back().get(), size, MADV_HUGEPAGE);
    std::fill_n(arrays.back().get(), count, 1.0);
  }
  const auto run = [&](auto&& pass) {
    return fastest_seconds(threads, 40, [&](int thread) {
      const auto at = static_cast<std::size_t>(3 * thread);
      pass(arrays[at].get(), arrays[at + 1].get(), arrays[at + 2].get(), count);
    });
  };
  double seconds = run(triad);
#ifdef __x86_64__
  seconds = std::min(seconds, run(triad_past_caches));
#endif
  return 24.0 * static_cast<double>(count) * threads / seconds;
}

std::vector<Ceiling> read_ceilings(const char* path) {
  const auto document = nlohmann::json::parse(std::ifstream(path));
  std::vector<Ceiling> ceilings;
  for (const auto& row : document.at("ceilings")) {
    Ceiling ceiling;
    ceiling.device = row.at("device");
    ceiling.subject = row.at("subject");
    ceiling.path = row.at("path");
    ceiling.scope = row.at("scope");
    ceiling.value = row.at("value");
    ceiling.high = row.at("high");
    ceilings.push_back(ceiling);
  }
  return ceilings;
}

class Comparison {
 public:
  explicit Comparison(std::vector<Ceiling> ceilings) : ceilings_(std::move(ceilings)) {
    std::printf("| what | scope | ceiling, G/s | by hand, G/s | ratio |\n|---|---|---|---|---|\n");
  }
  void add(const char* subject, const char* path, const char* scope, double by_hand) {
    for (const Ceiling& ceiling : ceilings_) {
      if (ceiling.device != "cpu" || ceiling.subject != subject || ceiling.path != path ||
          ceiling.scope != scope) {
        continue;
      }
      const double ratio = ceiling.high / by_hand;
      worst_ = std::max(worst_, std::abs(ratio - 1.0));
      std::printf("| %s %s | %s | %.1f | %.1f | %.3f |\n", subject, path, scope, ceiling.high / 1e9,
                  by_hand / 1e9, ratio);
      std::fflush(stdout);
    }
  }
  [[nodiscard]] double worst() const { return worst_; }

 private:
  std::vector<Ceiling> ceilings_;
  double worst_ = 0.0;
};

}  // namespace

int main(int argc, char** argv) {
  const ridgeline::Environment env = ridgeline::read_environment();
  Comparison comparison(argc > 1 ? read_ceilings(argv[1]) : ridgeline::measure_ceilings("cpu"));
  long last_cache = 16 << 20;
  for (const auto& cache : env.caches) last_cache = std::max<long>(last_cache, cache.bytes);
  struct Scope {
    const char* name;
    int threads;
  };
  for (const Scope& scope : {Scope{"one core", 1}, Scope{"all cores", env.usable_processors}}) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("fma")) {
      comparison.add("fp32", "avx2", scope.name, float_rate(scope.threads));
      comparison.add("fp64", "avx2", scope.name, double_rate(scope.threads));
    }
#endif
    comparison.add("memory", "triad", scope.name, triad_rate(scope.threads, 4 * last_cache));
  }
  const bool close = comparison.worst() <= 0.10;
  std::printf("\n%s: the largest difference is %.1f%%\n", close ? "within 10%" : "NOT within 10%",
              100.0 * comparison.worst());
  return close ? 0 : 1;
}
