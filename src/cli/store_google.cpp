// Runs as Google Benchmark writes them: every measured iteration is a repetition, behind them come
// the aggregates, as the library itself does with --benchmark_repetitions.

#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/store_figures.h"
#include "cli/store_output.h"
#include "store/identity_fields.h"

namespace ridgeline::cli {
namespace {

using Json = nlohmann::ordered_json;

// Without the run's number: the same configuration has the same name in two files. What comes with
// a machine has no part in it.
std::string benchmark_name(const RunRecord& run) {
  std::vector<std::string> words;
  for (const IdentityField& field : identity_fields()) {
    std::string phrase = field.scope == Scope::machine ? std::string() : field.phrase(run);
    if (!phrase.empty()) words.push_back(std::move(phrase));
  }
  return joined(words, "/");
}

// There is no processor time for one iteration: where the device has a clock of its own its time
// stands there, else the wall clock's.
double other_time(const Sample& sample) {
  return sample.device_seconds.value_or(sample.wall_seconds);
}

Json entry(const std::string& name, const RunRecord& run, std::int64_t family,
           std::int64_t repetitions) {
  return {{"name", name},
          {"family_index", family},
          {"per_family_instance_index", 0},
          {"run_name", name},
          {"run_type", "iteration"},
          {"repetitions", repetitions},
          {"threads", std::max(run.executor.threads, 1)}};
}

void add_iterations(Json& list, const Json& base, const RunRecord& run,
                    const std::vector<Sample>& samples) {
  for (std::size_t i = 0; i < samples.size(); ++i) {
    Json row = base;
    row["repetition_index"] = i;
    row["iterations"] = 1;
    row["real_time"] = samples[i].wall_seconds * 1e3;
    row["cpu_time"] = other_time(samples[i]) * 1e3;
    row["time_unit"] = "ms";
    row["items_per_second"] = static_cast<double>(run.work.batch) / samples[i].wall_seconds;
    list.push_back(std::move(row));
  }
}

void add_aggregates(Json& list, const Json& base, const std::vector<Sample>& samples) {
  std::vector<double> wall, other;
  for (const Sample& sample : samples) {
    wall.push_back(sample.wall_seconds * 1e3);
    other.push_back(other_time(sample) * 1e3);
  }
  const Summary real = summarise(wall), cpu = summarise(other);
  const auto add = [&](const char* aggregate, double real_time, double cpu_time) {
    Json row = base;
    row["name"] = fmt::format("{}_{}", base["name"].get<std::string>(), aggregate);
    row["run_type"] = "aggregate";
    row["aggregate_name"] = aggregate;
    row["aggregate_unit"] = "time";
    row["iterations"] = samples.size();
    row["real_time"] = real_time;
    row["cpu_time"] = cpu_time;
    row["time_unit"] = "ms";
    list.push_back(std::move(row));
  };
  add("mean", real.mean, cpu.mean);
  add("median", real.median, cpu.median);
  add("stddev", real.deviation, cpu.deviation);
}

Json context(const Store& store, std::span<const RunRecord> runs) {
  Json environment;
  std::string host;
  for (const EnvironmentRecord& each : store.environments()) {
    if (runs.empty() || each.key != runs.front().environment) continue;
    host = each.host;
    environment = Json::parse(each.fingerprint, nullptr, false);
  }
  const auto at = [&](const char* pointer, const Json& otherwise) {
    const Json::json_pointer place(pointer);
    return environment.is_object() && environment.contains(place) && !environment[place].is_null()
               ? environment[place]
               : otherwise;
  };
  return {{"date", runs.empty() ? "" : runs.front().started},
          {"host_name", host},
          {"executable", "ridgeline"},
          {"num_cpus", at("/cpu/processors", nullptr)},
          {"mhz_per_cpu", at("/cpu/max_mhz", nullptr)},
          {"cpu_scaling_enabled",
           at("/cpu/governor", "") != "performance" && at("/cpu/governor", "") != ""},
          {"caches", Json::array()},
          {"load_avg", Json::array()},
          {"library_build_type", "release"}};
}

}  // namespace

std::string google_benchmark_json(const Store& store, std::span<const RunRecord> runs) {
  std::map<std::string, int> uses;
  Json list = Json::array();
  std::int64_t family = 0;
  for (const RunRecord& run : runs) {
    std::vector<Sample> samples = store.samples(run.id);
    std::erase_if(samples, [](const Sample& s) { return s.kind != SampleKind::measured; });
    if (samples.empty()) continue;
    std::string name = benchmark_name(run);
    // The same configuration measured again in one file is another benchmark, not more repetitions.
    const int use = ++uses[name];
    if (use > 1) name += fmt::format("/again:{}", use);
    const Json base = entry(name, run, family++, static_cast<std::int64_t>(samples.size()));
    add_iterations(list, base, run, samples);
    add_aggregates(list, base, samples);
  }
  return json_document(Json{{"context", context(store, runs)}, {"benchmarks", std::move(list)}});
}

}  // namespace ridgeline::cli
