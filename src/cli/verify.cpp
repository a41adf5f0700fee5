// ridgeline verify: one backend against another, value by value.

#include "inspect/verify.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>

#include "backends/registry.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/tables.h"
#include "cli/terminal.h"

namespace ridgeline::cli {
namespace {

using Json = nlohmann::ordered_json;

struct VerifyOptions {
  RunOptions run;
  OptimizerOptions optimizer;
  StepDataOptions data;
  OutputOptions output;
  std::string against = std::string(reference_backend.name);
  std::int64_t steps = 1;
  std::optional<double> tolerance;  // nothing: what the precision allows
  bool accumulate = false;
};

// Of one step; where errors add up, of a few layers: in units of the precision's own roundings.
double usual_tolerance(Precision precision, bool accumulate) {
  switch (precision) {
    case Precision::fp32:
      return 1e-4;
    case Precision::tf32:
    case Precision::fp16:
      return accumulate ? 5e-2 : 1e-2;
    case Precision::bf16:
      return accumulate ? 2e-1 : 5e-2;
  }
  return 0.0;
}

std::string error_text(double error) { return fmt::format("{:.2e}", error); }

std::string verify_text(const VerifyResult& result, const VerifyConfig& config) {
  TextTable table({"phase", "value", "shape", config.tested.backend, config.against.backend,
                   "FLOPs", "max error", "rms error", "note"},
                  "lllllrrrl");
  table.important({"value", "max error", "note", "rms error", "phase", "FLOPs", "shape"});
  for (std::size_t i = 0; i < result.values.size(); ++i) {
    const VerifiedValue& value = result.values[i];
    const bool beyond = !(value.worst.max_relative <= config.tolerance);
    std::string mark = beyond ? "beyond tolerance" : "";
    if (result.first_divergence == i) {
      mark = fmt::format("<- first divergence, step {}", result.divergence_step);
    }
    table.add_row({std::string(name_of(value.phase)), value.name, value.shape.text(),
                   value.tested_kernel, value.other_kernel,
                   fmt::format("{:.2f}x", value.flop_factor), error_text(value.worst.max_relative),
                   error_text(value.worst.rms_relative), mark});
  }
  std::string text = fmt::format(
      "{} against {}: {}, batch {}, {} step{}\nErrors are relative to the largest element of a "
      "value; for positions (of pooling), the share that differs.\nFLOPs: executed by the kernel ÷ "
      "counted for the operation.\n{}\n\n{}\n",
      config.tested.backend, config.against.backend, config.step.model.name, config.step.batch,
      config.steps, config.steps == 1 ? "" : "s",
      config.accumulate
          ? "Errors accumulate: each backend computes from its own values."
          : fmt::format("Errors do not accumulate: each step starts from the values of {}.",
                        config.against.backend),
      shown(table));
  const std::size_t alone = result.only_tested.size() + result.only_other.size();
  text += fmt::format("{} values compared", result.values.size());
  if (alone > 0) {
    text += fmt::format(
        "; {} more exist in one backend only, because the other has them inside a fused kernel "
        "(--no-pass fusion compares them)",
        alone);
  }
  text += '\n';
  text += result.first_divergence
              ? fmt::format("FAILED: {} differs by more than {}\n",
                            result.values[*result.first_divergence].name, config.tolerance)
              : fmt::format("passed: all errors are within {}\n", config.tolerance);
  return text;
}

// JSON knows no infinity.
Json finite_or_null(double number) { return std::isfinite(number) ? Json(number) : Json(nullptr); }

std::string verify_json(const VerifyResult& result, const VerifyConfig& config) {
  Json rows = Json::array();
  for (const VerifiedValue& value : result.values) {
    rows.push_back({{"name", value.name},
                    {"layer", value.layer},
                    {"phase", name_of(value.phase)},
                    {"shape", value.shape.text()},
                    {"kernel", value.tested_kernel},
                    {"against_kernel", value.other_kernel},
                    {"flop_factor", value.flop_factor},
                    {"max_absolute_error", finite_or_null(value.worst.max_absolute)},
                    {"max_relative_error", finite_or_null(value.worst.max_relative)},
                    {"rms_relative_error", finite_or_null(value.worst.rms_relative)},
                    {"step", value.worst_step},
                    {"within", value.worst.max_relative <= config.tolerance}});
  }
  const Json document = {
      {"model", config.step.model.name},
      {"backend", config.tested.backend},
      {"against", config.against.backend},
      {"batch", config.step.batch},
      {"steps", config.steps},
      {"accumulate", config.accumulate},
      {"tolerance", config.tolerance},
      {"passed", !result.first_divergence.has_value()},
      {"first_divergence", result.first_divergence
                               ? Json(result.values[*result.first_divergence].name)
                               : Json(nullptr)},
      {"values", std::move(rows)},
      {"only_in_backend", result.only_tested},
      {"only_in_against", result.only_other}};
  return json_document(document);
}

std::string verify_csv(const VerifyResult& result) {
  std::string text =
      "name,layer,phase,shape,kernel,against_kernel,flop_factor,max_relative,rms_relative\n";
  for (const VerifiedValue& value : result.values) {
    text += csv_line(value.name, value.layer, name_of(value.phase), value.shape.text(),
                     value.tested_kernel, value.other_kernel, value.flop_factor,
                     value.worst.max_relative, value.worst.rms_relative);
  }
  return text;
}

int run_verify(const VerifyOptions& options) {
  apply(options.run);
  VerifyConfig config;
  config.step.model = model_config(options.run);
  config.step.batch = options.run.batch;
  config.step.freeze = options.run.freeze;
  config.step.recompute = options.run.recompute;
  config.step.optimizer = optimizer_attributes(options.optimizer);
  config.step.label_smoothing = options.optimizer.label_smoothing;
  config.learning_rate = learning_rate(options.optimizer);
  config.seed = static_cast<std::uint64_t>(options.run.seed);
  config.steps = options.steps;
  if (config.steps < 1) bad_input("--steps {}: must be at least 1", config.steps);
  if (options.tolerance && !(*options.tolerance > 0.0 && std::isfinite(*options.tolerance))) {
    bad_input("--tolerance {}: must be above 0 and finite", *options.tolerance);
  }
  config.tested = plan_request(options.run, options.run.backend);
  config.against = plan_request(options.run, options.against);
  check_writable(options.output.csv);
  const std::unique_ptr<Device> device = make_device(options.run.device);
  config.step.precision = precision_of(options.run, *device);
  config.accumulate = options.accumulate;
  config.tolerance =
      options.tolerance.value_or(usual_tolerance(config.step.precision, config.accumulate));
  // A backend of another device is compared where it computes, in fp32.
  const bool same_device = config.against.backend == kAuto ||
                           providers_of(config.against.backend)[0]->device == device->kind();
  if (same_device) config.against_precision = config.step.precision;
  const std::unique_ptr<Device> other =
      same_device ? nullptr
                  : make_device(std::string(providers_of(config.against.backend)[0]->device));
  std::vector<PlanRequest> requests = {config.tested};
  if (same_device) {
    requests.push_back(config.against);
    if (const auto sizing = unfused(config.against, *device)) requests.push_back(*sizing);
  }
  const Dataset data = prepare_step(config.step, options.data, options.run, requests,
                                    config.step.batch * config.steps, *device);
  Terminal terminal(options.output.json);
  show_plans(config.step, options.run, std::span(requests).first(same_device ? 2 : 1), terminal,
             *device);
  const VerifyResult result = verify_steps(config, data, *device, same_device ? *device : *other);
  if (!options.output.csv.empty()) write_file_atomically(options.output.csv, verify_csv(result));
  print(options.output.json ? verify_json(result, config) : verify_text(result, config));
  return result.first_divergence ? 1 : 0;
}

}  // namespace

void add_verify(Parser& program, Action& action) {
  auto options = std::make_shared<VerifyOptions>();
  options->run.batch = 32;
  Parser* command = program.add_subcommand(
      "verify", "Check that two backends compute the same values and gradients");
  add_run_options(*command, options->run, "Backend to check");
  command->heading("Comparison");
  command->add_option("--against NAME", options->against, "Backend to compare with");
  command->add_option("--steps N", options->steps, "Training steps");
  command->add_option("--tolerance NUMBER", options->tolerance,
                      "Largest allowed error, relative to the largest element of a value "
                      "[default: depends on the precision]");
  command->add_flag("--accumulate", options->accumulate,
                    "Let errors accumulate from layer to layer");
  add_step_data_options(*command, options->data);
  add_optimizer_options(*command, options->optimizer);
  add_output_options(*command, options->output, "Write one row per value");
  add_table_options(*command);
  command->notes("The exit code is 1 if a value differs by more than the tolerance.");
  command->examples(
      {"ridgeline verify mnist_cnn --backend native --against reference",
       "ridgeline verify mnist_cnn --backend onednn --against native --steps 5 --batch 64",
       "ridgeline verify resnet18 --device cuda:0 --backend cuda --against reference --batch 4"});
  command->callback([options, &action] { action = [options] { return run_verify(*options); }; });
}

}  // namespace ridgeline::cli
