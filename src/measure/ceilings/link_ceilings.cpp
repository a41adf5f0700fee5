#include "measure/ceilings/link_ceilings.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "backends/nccl/backend.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/json_text.h"
#include "measure/ceilings/ceilings.h"
#include "peers/line_process.h"
#include "store/field_json.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kRepeatSeconds = 0.003;  // of one repeat, at least
constexpr std::int64_t kMostCalls = 1000;
constexpr double kPatienceSeconds = 600.0;
constexpr std::array<std::int64_t, 11> kSizes = {
    4, 64, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
// Rates of smaller messages are latencies in other words.
constexpr std::int64_t kFirstRate = 1 << 10;

// All-reduces of buffers where the ranks' gradients would lie.
class Link {
 public:
  Link(Ranks& ranks, Device& device)
      : ranks_(ranks), device_(device), memory_(device, static_cast<std::size_t>(kSizes.back())) {}

  // Seconds of one of `calls` all-reduces, mean over the ranks.
  double seconds_of(std::int64_t bytes, std::int64_t calls) {
    device_.fill(memory_.data(), std::byte{0}, static_cast<std::size_t>(bytes));
    device_.synchronize();
    ranks_.barrier();
    const Clock::time_point start = Clock::now();
    for (std::int64_t i = 0; i < calls; ++i) all_reduce(static_cast<std::size_t>(bytes));
    device_.synchronize();
    double seconds = seconds_since(start) / static_cast<double>(calls);
    ranks_.all_reduce({&seconds, 1});
    return seconds / ranks_.size();
  }

  // The same number on all ranks.
  std::int64_t calls_for(std::int64_t bytes) {
    (void)seconds_of(bytes, 2);
    const double once = seconds_of(bytes, 3);
    return std::clamp<std::int64_t>(std::llround(kRepeatSeconds / once), 1, kMostCalls);
  }

 private:
  void all_reduce(std::size_t bytes) {
    const std::span values(reinterpret_cast<float*>(memory_.data()), bytes / sizeof(float));
    if (device_.kind() == "cuda") {
      nccl::all_reduce(ranks_, values, device_.queue());
    } else {
      ranks_.all_reduce(values);
    }
  }

  Ranks& ranks_;
  Device& device_;
  DeviceMemory memory_;
};

Ceiling named(const Ranks& ranks, const Device& device, const char* kind, const char* path,
              const char* unit, std::int64_t bytes) {
  Ceiling ceiling = ceilings::ceiling_named(link_device(ranks.size(), device.kind()), kind,
                                            kAllReduce, path, ranks.transport(), unit);
  ceiling.capacity_bytes = bytes;
  return ceiling;
}

}  // namespace

std::string link_device(int ranks, std::string_view device_kind) {
  return fmt::format("{}ranks:{}", device_kind == "cuda" ? "gpu-" : "", ranks);
}

std::vector<Ceiling> measure_links(Ranks& ranks, Device& device, int repeats) {
  ensure(ranks.size() > 1, "one rank has no link");
  std::vector<Ceiling> found;
  Link link(ranks, device);
  const double bus = 2.0 * (ranks.size() - 1) / ranks.size();
  for (const std::int64_t bytes : kSizes) {
    const std::int64_t calls = link.calls_for(bytes);
    std::vector<double> seconds, algorithm, carried;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      seconds.push_back(link.seconds_of(bytes, calls));
      algorithm.push_back(static_cast<double>(bytes) / seconds.back());
      carried.push_back(bus * algorithm.back());
    }
    ceilings::set_values(found.emplace_back(named(ranks, device, "latency", "", "s", bytes)),
                         seconds);
    if (bytes < kFirstRate) continue;
    ceilings::set_values(
        found.emplace_back(named(ranks, device, "link", "algorithm", "B/s", bytes)), algorithm);
    ceilings::set_values(found.emplace_back(named(ranks, device, "link", "bus", "B/s", bytes)),
                         carried);
  }
  return found;
}

std::vector<Ceiling> links_of_job(const std::vector<std::string>& command) {
  LineProcess job(command);
  Json answer;
  std::vector<Ceiling> found;
  try {
    answer = Json::parse(job.ask("measure", kPatienceSeconds));
    if (answer.is_array()) found = read_list<Ceiling>(answer);
  } catch (const Json::exception& error) {
    fail("the ranks answered something else: {}", error.what());
  }
  job.end(5.0);
  if (answer.is_array()) return found;
  throw Error(static_cast<ErrorKind>(answer.at("kind").get<int>()),
              answer.at("error").get<std::string>());
}

void serve_links(Ranks& ranks, const std::function<std::unique_ptr<Device>()>& make,
                 const std::function<std::optional<std::string>()>& read,
                 const std::function<void(const std::string& line)>& write) {
  if (ranks.first()) (void)read();
  Json answer;
  try {
    const std::unique_ptr<Device> device = make();
    answer = list_json(measure_links(ranks, *device));
  } catch (const Error& error) {
    // What went wrong later ends the job.
    if (!ranks.ends_together()) throw;
    answer = {{"error", error.what()}, {"kind", static_cast<int>(error.kind())}};
  }
  if (ranks.first()) write(json_text(answer));
}

}  // namespace ridgeline
