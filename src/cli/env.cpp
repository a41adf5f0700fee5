// ridgeline env: information about this machine and build, and the measured ceilings.

#include <algorithm>
#include <iostream>
#include <nlohmann/json.hpp>

#include "base/bf16_unit.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/ceilings_output.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/progress.h"
#include "cli/tables.h"
#include "devices/opencl.h"
#include "lab/rank_device.h"
#include "measure/ceilings/ceilings.h"
#include "measure/ceilings/hardware.h"
#include "measure/ceilings/link_ceilings.h"
#include "measure/machine/environment.h"
#include "measure/telemetry/telemetry.h"
#include "ranks/launch.h"
#include "ranks/ranks.h"
#include "store/store.h"

namespace ridgeline::cli {
namespace {

template <typename Line>
void add_hosting(const HostState& host, const Line& line) {
  line("cgroup limits",
       fmt::format("{} processors, {} of memory",
                   host.cpu_limit ? fmt::format("{:.2f}", *host.cpu_limit) : "all",
                   host.memory_limit_bytes ? bytes_text(*host.memory_limit_bytes) : "all"));
  line("machine", host.machine);
  line("virtualisation", host.virtualisation.empty() ? "none found" : host.virtualisation);
  line("container", host.container.empty() ? "none found" : host.container);
  line("governor", host.governor + (host.boost ? *host.boost ? ", boost on" : ", boost off" : ""));
  line("huge pages", host.huge_pages);
  line("clock source", host.clock_source);
  line("gpu driver", host.gpu_driver);
}

// The unit in use, and what is wrong with a better one; or why there is none.
std::string bf16_text() {
  if (const std::string refusal = refuse_bf16(); !refusal.empty()) return "none: " + refusal;
  const std::string trouble = bf16_trouble();
  return std::string(name_of(bf16_unit())) + (trouble.empty() ? "" : "; " + trouble);
}

std::string environment_text(const Environment& env) {
  std::string text;
  const auto line = [&](const std::string& name, const std::string& value) {
    text += fmt::format("{:<16}{}\n", name, value.empty() ? "n/a" : value);
  };
  const auto or_na = [](int number) {
    return number > 0 ? fmt::format("{}", number) : std::string("n/a");
  };
  line("host", env.host);
  line("cpu", env.cpu);
  line("processors",
       fmt::format("{} sockets, {} cores, {} processors, {} usable here", or_na(env.sockets),
                   or_na(env.cores), or_na(env.processors), or_na(env.usable_processors)));
  line("highest clock", env.max_mhz > 0.0 ? fmt::format("{:.0f} MHz", env.max_mhz) : "");
  line("vector units", joined(env.vector_extensions, " "));
  line("bf16 unit", bf16_text());
  for (const CacheInfo& cache : env.caches) {
    line(fmt::format("L{} {}", cache.level, cache.type),
         fmt::format("{}, shared by {}", bytes_text(cache.bytes), cache.shared_by));
  }
  line("memory", fmt::format("{}, {} available", bytes_text(env.memory_bytes),
                             bytes_text(env.available_bytes)));
  add_hosting(env.hosting, line);
  for (std::size_t i = 0; i < env.gpus.size(); ++i) {
    const GpuInfo& gpu = env.gpus[i];
    line(fmt::format("cuda:{}", i),
         fmt::format("{}, compute capability {}, {} multiprocessors at up to {:.0f} MHz, {}, {} of "
                     "L2; driver for CUDA {}",
                     gpu.name, gpu.capability, gpu.multiprocessors, gpu.clock_mhz,
                     bytes_text(gpu.memory_bytes), bytes_text(gpu.l2_bytes), gpu.cuda_driver));
  }
  if (env.gpus.empty()) line("cuda", "none: " + env.no_gpu);
  const std::vector<OpenClInfo> devices = opencl_devices();
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const OpenClInfo& device = devices[i];
    const std::string refusal = opencl_recording_refusal(i);
    line(fmt::format("opencl:{}", i),
         fmt::format("{}, {} compute units at up to {:.0f} MHz, {}, at most {} in one piece, {} of "
                     "local memory; {}, {}; {}",
                     device.name, device.compute_units, device.clock_mhz,
                     bytes_text(device.memory_bytes), bytes_text(device.largest_allocation),
                     bytes_text(device.local_bytes), device.fp16 ? "fp16" : "no fp16",
                     refusal.empty() ? "recorded steps" : "no recorded steps: " + refusal,
                     device.platform));
  }
  if (devices.empty()) line("opencl", "none: " + opencl_unavailable());
  line("system", env.os);
  line("kernel", env.kernel);
  line("ridgeline", fmt::format("{} ({}), {}", env.version, env.revision, env.build_type));
  line("compiler", fmt::format("{}, {}", env.compiler, env.flags));
  for (const auto& [name, version] : env.libraries) line(name, version);
  return text;
}

// Each sensor with what it reads now, or null and the reason.
nlohmann::ordered_json sensors_json(const SensorState& state) {
  auto rows = nlohmann::ordered_json::array();
  const auto add = [&](const auto& sensor, std::optional<double> value, const std::string& reason) {
    rows.push_back({{"device", sensor.device},
                    {"sensor", sensor.sensor},
                    {"value", or_null(value)},
                    {"reason", text_or_null(reason)}});
  };
  for (const Reading& reading : state.readings) add(reading, reading.value, "");
  for (const MissingSensor& sensor : state.missing) add(sensor, std::nullopt, sensor.reason);
  return rows;
}

int run_sensors(bool json) {
  const SensorState state = read_sensors();
  if (json) {
    print(json_document(
        nlohmann::ordered_json{{"sensors", sensors_json(state)}, {"gpus", state.gpus}}));
    return 0;
  }
  print(sensors_text(state));
  return 0;
}

// With the devices of OpenCL, which are no part of what a run's machine is known by: to ask for
// them starts their drivers.
nlohmann::ordered_json environment_document(const Environment& env) {
  auto document = nlohmann::ordered_json::parse(environment_json(env));
  auto devices = nlohmann::ordered_json::array();
  const std::vector<OpenClInfo> found = opencl_devices();
  for (std::size_t i = 0; i < found.size(); ++i) {
    const OpenClInfo& device = found[i];
    devices.push_back({{"name", device.name},
                       {"platform", device.platform},
                       {"version", device.version},
                       {"driver", device.driver},
                       {"cpu", device.cpu},
                       {"fp16", device.fp16},
                       {"fp64", device.fp64},
                       {"command_buffers", device.command_buffers},
                       {"recorded_steps", opencl_recording_refusal(i).empty()},
                       {"compute_units", device.compute_units},
                       {"clock_mhz", device.clock_mhz},
                       {"memory_bytes", device.memory_bytes},
                       {"largest_allocation_bytes", device.largest_allocation},
                       {"local_memory_bytes", device.local_bytes},
                       {"cache_bytes", device.cache_bytes}});
  }
  document["bf16_unit"] = refuse_bf16().empty() ? nlohmann::json(name_of(bf16_unit())) : nullptr;
  document["bf16_trouble"] = text_or_null(bf16_trouble());
  document["opencl"] = std::move(devices);
  document["no_opencl"] = text_or_null(opencl_unavailable());
  return document;
}

struct EnvOptions {
  bool json = false, measure = false, sensors = false, force = false;
  std::string device;  // empty: all that there are
  std::string ranks;   // numbers of them; empty: their links are not measured
  bool as_rank = false;
  std::string store = "ridgeline.db";
  std::string label;
};

std::vector<std::string> devices_of(const EnvOptions& options, const Environment& env) {
  if (!options.device.empty()) return {options.device};
  std::vector<std::string> names = {"cpu"};
  for (std::size_t i = 0; i < env.gpus.size(); ++i) names.push_back(fmt::format("cuda:{}", i));
  for (std::size_t i = 0; i < opencl_devices().size(); ++i) {
    names.push_back(fmt::format("opencl:{}", i));
  }
  return names;
}

// Repetitions that differ much mean that other programs were running: the roof may be too low.
void warn_of_disturbance(const std::vector<Ceiling>& ceilings) {
  constexpr double kCalm = 0.7;
  const auto disturbed =
      std::count_if(ceilings.begin(), ceilings.end(), [](const Ceiling& ceiling) {
        return ceiling.value < kCalm * ceiling.high && ceiling.unit != "s";
      });
  if (disturbed > 0) {
    message(
        fmt::format("warning: {} of {} ceilings varied by more than 30%, because other programs "
                    "were running; measure again when the machine is idle\n",
                    disturbed, ceilings.size()));
  }
  const auto low = std::count_if(ceilings.begin(), ceilings.end(),
                                 [](const Ceiling& ceiling) { return ceiling.lower_bound; });
  if (low > 0) {
    message(
        fmt::format("warning: {} of {} ceilings are only lower bounds: all cores together were "
                    "slower than one core, because other programs were running. The same command "
                    "measures them again\n",
                    low, ceilings.size()));
  }
}

int run_measure(const EnvOptions& options) {
  const Environment env = read_environment();
  const EnvironmentRecord record = environment_record(env, options.label);
  std::vector<std::string> devices;
  for (const std::string& name : devices_of(options, env)) {
    devices.push_back(make_device(name)->name());
  }
  // Before measuring: wrong files of hardware and a store that cannot be written are told at once.
  (void)known_hardware();
  Store store(options.store);
  std::vector<Ceiling> all;
  for (const std::string& device : devices) {
    ProgressBar bar;
    store.add(record);
    // Goes on where a busy machine left lower bounds.
    std::vector<Ceiling> known = stored_ceilings(store, record.key, device);
    if (options.force || std::none_of(known.begin(), known.end(),
                                      [](const Ceiling& ceiling) { return ceiling.lower_bound; })) {
      known.clear();
    }
    const std::vector<Ceiling> found = undisturbed_ceilings(
        device,
        [&](std::int64_t done, std::int64_t total, const std::string& what) {
          bar.show(done, total, what.c_str());
        },
        std::move(known));
    store.replace_ceilings(record.key, device, found);
    all.insert(all.end(), found.begin(), found.end());
  }
  warn_of_disturbance(all);
  if (options.json) {
    nlohmann::ordered_json document = environment_document(env);
    document["environment_key"] = record.key;
    document["store"] = options.store;
    document["ceilings"] = ceilings_json(all);
    print(json_document(document));
    return 0;
  }
  print(ceilings_text(all) +
        fmt::format("\nspread: from the median to the slowest and to the fastest repetition. The "
                    "highest value is the roof.\nStored in {} for environment {}\n",
                    options.store, record.key));
  return 0;
}

std::vector<int> rank_counts(const std::string& list) {
  std::vector<int> counts;
  for (const std::string_view piece : pieces_of(list, ",")) {
    constexpr int kMost = 65536;
    const int count = number_in<int>(piece).value_or(0);
    if (count < 2 || count > kMost) {
      bad_input("--ranks {}: must be numbers from 2 to {}", list, kMost);
    }
    counts.push_back(count);
  }
  return counts;
}

int run_as_rank(const EnvOptions& options) {
  if (started_ranks() == nullptr) bad_input("--as-rank: this process is no rank");
  Ranks& ranks = *joined_ranks();
  const std::string name = options.device.empty() ? "cpu" : options.device;
  const auto make = [&] { return make_rank_device(device_of_rank(name, ranks)); };
  const auto read = [] {
    std::string line;
    return std::getline(std::cin, line) ? std::optional(line) : std::nullopt;
  };
  serve_links(ranks, make, read, [](const std::string& line) { print(line + '\n'); });
  return 0;
}

int run_links(const EnvOptions& options) {
  const std::vector<int> counts = rank_counts(options.ranks);
  const Environment env = read_environment();
  const EnvironmentRecord record = environment_record(env, options.label);
  Store store(options.store);
  store.add(record);
  std::vector<Ceiling> all;
  for (const int count : counts) {
    std::vector<std::string> command = rank_launcher(count);
    command.insert(command.end(), {own_program(), "env", "--measure", "--as-rank"});
    if (!options.device.empty()) command.insert(command.end(), {"--device", options.device});
    const std::vector<Ceiling> found = links_of_job(command);
    store.replace_ceilings(record.key, link_device(count, device_kind(options.device)), found);
    all.insert(all.end(), found.begin(), found.end());
  }
  if (options.json) {
    print(json_document(nlohmann::ordered_json{{"environment_key", record.key},
                                               {"store", options.store},
                                               {"ceilings", ceilings_json(all)}}));
    return 0;
  }
  print(
      ceilings_text(all) +
      fmt::format("\nall-reduce of f32 by message size: latency is its time, mean over the ranks, "
                  "as OSU's osu_allreduce counts; algorithm is bytes over that time, bus that "
                  "times 2 (n - 1) / n, as nccl-tests count.\nStored in {} for environment {}\n",
                  options.store, record.key));
  return 0;
}

}  // namespace

void add_env(Parser& program, Action& action) {
  auto options = std::make_shared<EnvOptions>();
  Parser* command =
      program.add_subcommand("env", "Show information about this machine and this build");
  command->heading(kMeasuringHeading);
  Option* measure = command->add_flag(
      "--measure", options->measure,
      "Measure the hardware's ceilings (arithmetic, bandwidths, latencies) and store them");
  command
      ->add_option("--device NAME", options->device,
                   "Measure only this device: cpu, cuda:0 or opencl:0 [default: all]; with --ranks "
                   "the links between CPUs, or with cuda between GPUs")
      ->needs(measure);
  command
      ->add_option("--ranks LIST", options->ranks,
                   "Measure only the links between so many ranks, such as 2,4: time and bandwidth "
                   "of an all-reduce by size")
      ->needs(measure);
  command->add_flag("--as-rank", options->as_rank, "Measure links as one of the ranks")->hidden();
  command
      ->add_flag("--force", options->force,
                 "Measure all ceilings again, not only those that a busy machine spoiled")
      ->needs(measure);
  command
      ->add_flag("--sensors", options->sensors,
                 "List all sensors with their current reading, or why they cannot be read")
      ->excludes(measure);
  command->heading(kStoreHeading);
  command->add_option("--store FILE", options->store, "The store that keeps the ceilings")
      ->needs(measure);
  command
      ->add_option("--env-label TEXT", options->label,
                   "Your name for this machine, such as 'cloud CPU, 4 vCPU'")
      ->needs(measure);
  add_json_option(*command, options->json);
  add_table_options(*command, ceiling_columns());
  command->examples({"ridgeline env", "ridgeline env --sensors",
                     "ridgeline env --measure --device cpu --store lab.db",
                     "ridgeline env --measure --ranks 2,4",
                     "ridgeline env --measure --ranks 4 --device cuda"});
  command->callback([options, &action] {
    action = [options] {
      if (options->as_rank) return run_as_rank(*options);
      if (!options->ranks.empty()) return run_links(*options);
      if (options->measure) return run_measure(*options);
      if (options->sensors) return run_sensors(options->json);
      const Environment env = read_environment();
      print(options->json ? json_document(environment_document(env)) : environment_text(env));
      return 0;
    };
  });
}

}  // namespace ridgeline::cli
