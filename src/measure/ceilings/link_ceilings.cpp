#include "measure/ceilings/link_ceilings.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/clock.h"
#include "base/error.h"
#include "base/json_text.h"
#include "measure/ceilings/ceilings.h"
#include "peers/line_process.h"
#include "store/field_json.h"

namespace ridgeline {
namespace {

constexpr double kRepeatSeconds = 0.003;  // of one repeat, at least
constexpr std::int64_t kMostCalls = 1000;
constexpr double kPatienceSeconds = 600.0;
constexpr std::array<std::int64_t, 11> kSizes = {
    4, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
// Rates of smaller messages are latencies in other words.
constexpr std::int64_t kFirstRate = 1 << 10;

// Seconds of one of `calls` all-reduces, mean over the ranks.
double seconds_of(Ranks& ranks, std::span<float> values, std::int64_t calls) {
  std::fill(values.begin(), values.end(), 0.0F);
  ranks.barrier();
  const Clock::time_point start = Clock::now();
  for (std::int64_t i = 0; i < calls; ++i) ranks.all_reduce(values);
  double seconds = seconds_since(start) / static_cast<double>(calls);
  ranks.all_reduce({&seconds, 1});
  return seconds / ranks.size();
}

// The same number on all ranks.
std::int64_t calls_for(Ranks& ranks, std::span<float> values) {
  (void)seconds_of(ranks, values, 2);
  const double once = seconds_of(ranks, values, 3);
  return std::clamp<std::int64_t>(std::llround(kRepeatSeconds / once), 1, kMostCalls);
}

Ceiling named(const Ranks& ranks, const char* kind, const char* path, const char* unit,
              std::int64_t bytes) {
  Ceiling ceiling = ceilings::ceiling_named(link_device(ranks.size()), kind, kAllReduce, path,
                                            ranks.transport(), unit);
  ceiling.capacity_bytes = bytes;
  return ceiling;
}

}  // namespace

std::string link_device(int ranks) { return fmt::format("ranks:{}", ranks); }

std::vector<Ceiling> measure_links(Ranks& ranks, int repeats) {
  ensure(ranks.size() > 1, "one rank has no link");
  std::vector<Ceiling> found;
  std::vector<float> buffer(static_cast<std::size_t>(kSizes.back()) / sizeof(float));
  const double bus = 2.0 * (ranks.size() - 1) / ranks.size();
  for (const std::int64_t bytes : kSizes) {
    const auto values = std::span(buffer).first(static_cast<std::size_t>(bytes) / sizeof(float));
    const std::int64_t calls = calls_for(ranks, values);
    std::vector<double> seconds, algorithm, carried;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      seconds.push_back(seconds_of(ranks, values, calls));
      algorithm.push_back(static_cast<double>(bytes) / seconds.back());
      carried.push_back(bus * algorithm.back());
    }
    ceilings::set_values(found.emplace_back(named(ranks, "latency", "", "s", bytes)), seconds);
    if (bytes < kFirstRate) continue;
    ceilings::set_values(found.emplace_back(named(ranks, "link", "algorithm", "B/s", bytes)),
                         algorithm);
    ceilings::set_values(found.emplace_back(named(ranks, "link", "bus", "B/s", bytes)), carried);
  }
  return found;
}

std::vector<Ceiling> links_of_job(const std::vector<std::string>& command) {
  LineProcess job(command);
  std::vector<Ceiling> found;
  try {
    found = read_list<Ceiling>(nlohmann::ordered_json::parse(job.ask("measure", kPatienceSeconds)));
  } catch (const nlohmann::json::exception& error) {
    fail("the ranks answered something else: {}", error.what());
  }
  job.end(5.0);
  return found;
}

void serve_links(Ranks& ranks, const std::function<std::optional<std::string>()>& read,
                 const std::function<void(const std::string& line)>& write) {
  if (ranks.first()) (void)read();
  const std::vector<Ceiling> found = measure_links(ranks);
  if (ranks.first()) write(json_text(list_json(found)));
}

}  // namespace ridgeline
