// ridgeline bench: how long training steps take.

#include <CLI/CLI.hpp>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/step_data.h"
#include "lab/step_bench.h"

namespace ridgeline::cli {
namespace {

using Json = nlohmann::ordered_json;

struct BenchOptions {
  RunOptions run;
  OptimizerOptions optimizer;
  StepDataOptions data;
  OutputOptions output;
  std::int64_t warmup = 10, iterations = 100;
  bool per_step = false;
};

std::vector<std::string> backend_names(const std::string& list) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    names.push_back(list.substr(begin, end - begin));
    if (!seen.insert(names.back()).second) bad_input("--backend: {} is named twice", names.back());
    begin = end + 1;
  }
  return names;
}

std::string image_text(const ModelConfig& model) {
  return ImageSize{model.channels, model.height, model.width}.text();
}

// Where steps are queued, by the device's clock and without the pauses of waiting for each.
double seconds_per_step(const BenchResult& result) {
  return result.device_seconds.empty() ? result.summary.median
                                       : median_interval(result.device_seconds).median;
}

double rate(const BenchResult& result, std::int64_t batch) {
  return static_cast<double>(batch) / seconds_per_step(result);
}

// What driver and libraries hold beside the arenas.
Json runtime_memory(const Device& device) {
  const std::optional<std::size_t> bytes = device.runtime_memory();
  return bytes ? Json(*bytes) : Json(nullptr);
}

Json device_ms(const BenchResult& result) {
  return result.device_seconds.empty() ? Json(nullptr) : Json(seconds_per_step(result) * 1e3);
}

std::string ops_of(const Plan& plan, const Step& step) {
  if (step.is_reorder()) return "reorder";
  std::vector<std::string_view> names;
  for (const NodeId node : step.nodes) {
    const std::string_view name = name_of(plan.graph->node(node).kind);
    if (names.empty() || names.back() != name) names.push_back(name);
  }
  return joined(names, "+");
}

std::int64_t boundary_bytes(const Step& step) {
  return step.boundary.bytes_read + step.boundary.bytes_written;
}

std::string per_step_text(const BenchResult& result) {
  const Plan& plan = result.runner->session().plan(result.plan);
  double total = 0.0;
  for (const double seconds : result.step_seconds) total += seconds;
  TextTable table({"#", "phase", "layer", "ops", "kernel", "time", "share", "GFLOP/s", "GB/s"},
                  "rllllrrrr");
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    const double seconds = result.step_seconds[s];
    const auto flops = static_cast<double>(step.boundary.flops);
    const auto bytes = static_cast<double>(boundary_bytes(step));
    table.add_row({fmt::format("{}", s), std::string(name_of(step.phase)), step.layer,
                   ops_of(plan, step), step.kernel_name(), duration_text(seconds),
                   fmt::format("{:.1f}%", 100.0 * seconds / total),
                   fmt::format("{:.2f}", flops / seconds / 1e9),
                   fmt::format("{:.2f}", bytes / seconds / 1e9)});
  }
  return fmt::format("\nsteps of {} (each alone, the fastest of a few; sum {})\n{}", result.backend,
                     duration_text(total), table.text());
}

Json per_step_json(const BenchResult& result) {
  const Plan& plan = result.runner->session().plan(result.plan);
  Json rows = Json::array();
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const Step& step = plan.steps[s];
    rows.push_back({{"layer", step.layer},
                    {"op", ops_of(plan, step)},
                    {"phase", name_of(step.phase)},
                    {"kernel", step.kernel_name()},
                    {"ms", result.step_seconds[s] * 1e3},
                    {"flops", step.boundary.flops},
                    {"bytes", boundary_bytes(step)}});
  }
  return rows;
}

Json result_json(const BenchResult& result, const BenchConfig& config, const BenchOptions& options,
                 const Device& device) {
  const Plan& plan = result.runner->session().plan(result.plan);
  Json shares = Json::object(), kernels = Json::array();
  for (const auto& [provider, share] : result.providers) shares[provider] = share;
  for (const Step& step : plan.steps) kernels.push_back(step.kernel_name());
  Json row = {{"model", config.step.model.name},
              {"backend", result.backend},
              {"device", device.name()},
              {"batch", config.step.batch},
              {"image", image_text(config.step.model)},
              {"precision", options.run.precision},
              {"threads", thread_count()},
              {"median_ms", result.summary.median * 1e3},
              {"ci_low_ms", result.summary.low * 1e3},
              {"ci_high_ms", result.summary.high * 1e3},
              {"device_ms", device_ms(result)},
              {"samples_per_second", rate(result, config.step.batch)},
              {"samples", result.seconds.size()},
              {"peak_memory_bytes", result.memory_bytes},
              {"runtime_memory_bytes", runtime_memory(device)},
              {"first_step_ms", result.first_step_seconds * 1e3},
              {"training_flops", plan.work().flops},
              {"provider_shares", std::move(shares)},
              {"kernels", std::move(kernels)}};
  if (options.per_step) row["steps"] = per_step_json(result);
  return row;
}

std::string bench_csv(const std::vector<BenchResult>& results, const BenchConfig& config,
                      const BenchOptions& options, const Device& device) {
  std::string text = "model,backend,device,batch,image,precision,threads,iteration,ms\n";
  for (const BenchResult& result : results) {
    for (std::size_t i = 0; i < result.seconds.size(); ++i) {
      text += fmt::format("{},{},{},{},{},{},{},{},{}\n", config.step.model.name, result.backend,
                          device.name(), config.step.batch, image_text(config.step.model),
                          options.run.precision, thread_count(), i + 1, result.seconds[i] * 1e3);
    }
  }
  return text;
}

std::string bench_text(const std::vector<BenchResult>& results, const BenchConfig& config,
                       const BenchOptions& options, const Device& device) {
  const auto ms = [](double seconds) { return fmt::format("{:.3f}", seconds * 1e3); };
  std::string text = fmt::format(
      "{}, {}, batch {}, {}, {}, {} thread{}, {} steps after {} for warm-up\n\n",
      config.step.model.name, image_text(config.step.model), config.step.batch,
      options.run.precision, optimizer_text(config.step.optimizer, config.learning_rate),
      thread_count(), thread_count() == 1 ? "" : "s", config.iterations, config.warmup);
  TextTable table({"backend", "device", "median ms", "95% interval", "queued ms", "samples/s",
                   "GFLOP/s", "memory", "providers' shares of time"},
                  "llrrrrrrl");
  for (const BenchResult& result : results) {
    const Plan& plan = result.runner->session().plan(result.plan);
    std::string shares;
    for (const auto& [provider, share] : result.providers) {
      shares += fmt::format("{}{} {:.1f}%", shares.empty() ? "" : ", ", provider, 100.0 * share);
    }
    table.add_row({result.backend, device.name(), ms(result.summary.median),
                   fmt::format("{} to {}", ms(result.summary.low), ms(result.summary.high)),
                   result.device_seconds.empty() ? "-" : ms(seconds_per_step(result)),
                   count_text(std::llround(rate(result, config.step.batch))),
                   fmt::format("{:.1f}", static_cast<double>(plan.work().flops) /
                                             seconds_per_step(result) / 1e9),
                   bytes_text(result.memory_bytes), shares});
  }
  text += table.text();
  if (const std::optional<std::size_t> runtime = device.runtime_memory()) {
    text += fmt::format("\nbeside the arenas, the driver, its libraries and others hold {} on {}\n",
                        bytes_text(static_cast<std::int64_t>(*runtime)), device.name());
  }
  if (options.per_step) {
    for (const BenchResult& result : results) text += per_step_text(result);
  }
  return text;
}

int run_bench(const BenchOptions& options) {
  apply(options.run);
  BenchConfig config;
  config.step.model = model_config(options.run);
  config.step.batch = options.run.batch;
  config.step.freeze = options.run.freeze;
  config.step.recompute = options.run.recompute;
  config.step.optimizer = optimizer_attributes(options.optimizer);
  config.step.label_smoothing = options.optimizer.label_smoothing;
  config.learning_rate = learning_rate(options.optimizer);
  config.warmup = options.warmup;
  config.iterations = options.iterations;
  config.seed = static_cast<std::uint64_t>(options.run.seed);
  if (config.iterations < 1) bad_input("--iterations {}: must be at least 1", config.iterations);
  if (config.warmup < 0) bad_input("--warmup {}: must not be negative", config.warmup);
  for (const std::string& name : backend_names(options.run.backend)) {
    config.candidates.push_back(plan_request(options.run, name));
  }
  check_writable(options.output.csv);
  const std::unique_ptr<Device> device = make_device(options.run.device);
  config.step.precision = precision_of(options.run, *device);
  const Dataset data = prepare_step(config.step, options.data, options.run, config.candidates,
                                    config.step.batch, *device);
  show_plans(config.step, options.run, config.candidates, options.output.json, *device);
  std::vector<BenchResult> results;
  // Before the first step there is nothing to print: the signal then ends the program.
  std::optional<InterruptGuard> interrupt;
  {
    ProgressBar bar;
    results = bench_steps(config, data, *device, [&](std::int64_t done, std::int64_t total) {
      bar.show(done, total, "step");
      if (!interrupt) interrupt.emplace();
      return !interrupt->raised();
    });
  }
  if (!options.output.csv.empty()) {
    write_file_atomically(options.output.csv, bench_csv(results, config, options, *device));
  }
  if (options.output.json) {
    Json rows = Json::array();
    for (const BenchResult& result : results) {
      rows.push_back(result_json(result, config, options, *device));
    }
    print(Json{{"results", std::move(rows)}}.dump(2) + '\n');
  } else {
    print(bench_text(results, config, options, *device));
  }
  if (!interrupt->raised()) return 0;
  message(fmt::format("interrupted: fewer steps were measured than the {} asked for\n",
                      config.iterations));
  return 128 + interrupt->signal();
}

}  // namespace

void add_bench(CLI::App& program, Action& action) {
  auto options = std::make_shared<BenchOptions>();
  options->optimizer.sgd_momentum = 0.9;
  CLI::App* command = program.add_subcommand("bench", "Measure the time of training steps");
  add_run_options(
      *command, options->run,
      "Provider, see 'ridgeline backends', or auto; several with commas, measured in turns");
  add_step_data_options(*command, options->data);
  add_optimizer_options(*command, options->optimizer);
  command->add_option("--warmup", options->warmup, "Steps before measuring")->capture_default_str();
  command->add_option("--iterations", options->iterations, "Measured steps")->capture_default_str();
  command->add_flag("--per-step", options->per_step, "Also time every step of the plan alone");
  add_output_options(*command, options->output, "Write one row for each measured step");
  command->footer(
      "Examples:\n"
      "  ridgeline bench mnist_cnn --batch 512 --backend native,onednn\n"
      "  ridgeline bench mnist_cnn --batch 512 --per-step\n"
      "  ridgeline bench mlp --batch 59000 --momentum 0 --json\n"
      "  ridgeline bench resnet50 --batch 128 --device cuda:0 --precision bf16 --backend "
      "cuda,cudnn,auto");
  command->callback([options, &action] { action = [options] { return run_bench(*options); }; });
}

}  // namespace ridgeline::cli
