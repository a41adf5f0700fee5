#pragma once

// The options of lab/options.h on the command line, under the same names everywhere.

#include "lab/bench_matrix.h"
#include "lab/options.h"
#include "lab/step_data.h"
#include "lab/store_options.h"

namespace ridgeline::cli {

class Option;
class Parser;

// Headings of the help.
constexpr const char* kModelHeading = "Model";
constexpr const char* kDataHeading = "Data";
constexpr const char* kTrainingHeading = "Training";
constexpr const char* kExecutionHeading = "Execution";
constexpr const char* kMeasuringHeading = "Measuring";
constexpr const char* kStoreHeading = "Store";
constexpr const char* kOutputHeading = "Output";

// --json and --csv.
struct OutputOptions {
  bool json = false;
  std::string csv;
};
void add_output_options(Parser& command, OutputOptions& options, const char* csv_meaning);
void add_json_option(Parser& command, bool& json);

// The functions below set the heading that their options stand under.

// MODEL or --model; shells suggest the known ones.
Option* add_model_option(Parser& command, std::string& model, const std::string& names,
                         const std::string& meaning);
// --backend, whose values shells suggest.
Option* add_backend_option(Parser& command, std::string& backend, const std::string& names,
                           const std::string& meaning);
void add_threads_option(Parser& command, int& threads);
// --bucket, --reduce, --sync-batch-norm: of measured ranks.
void add_exchange_options(Parser& command, RankWork& ranks);
// --device, --precision.
void add_device_options(Parser& command, RunOptions& options);
// --set, --classes.
void add_network_settings(Parser& command, RunOptions& options, const char* classes_default);
void add_init_option(Parser& command, RunOptions& options);
// --freeze, --recompute, --no-pass.
void add_step_options(Parser& command, RunOptions& options);
// The step's options, --seed, --threads, --deterministic, --print-plan, --explain.
void add_execution_options(Parser& command, RunOptions& options);
// --set, --init, --classes, --seed, --threads, --freeze, --recompute, --deterministic, --no-pass,
// --print-plan, --explain.
void add_plan_options(Parser& command, RunOptions& options);
// MODEL, --model, --backend, --device, --precision, --batch and the plan's options.
void add_run_options(Parser& command, RunOptions& options, const char* backend_meaning);
// --optimizer, --momentum, --nesterov, --weight-decay.
void add_optimizer_state_options(Parser& command, OptimizerOptions& options,
                                 const char* names = "--optimizer NAME");
// The same, --lr and --label-smoothing.
void add_optimizer_options(Parser& command, OptimizerOptions& options,
                           const char* names = "--optimizer NAME");
void add_decoder_option(Parser& command, std::string& decoder);
// What bench and profile measure: the plan's options, --data, --normalize, --loader, --workers and
// the optimizer's.
void add_work_options(Parser& command, BenchWork& work,
                      const char* optimizer_names = "--optimizer NAME");
void add_telemetry_option(Parser& command, double& hz);
// --schedule, --step-size, --gamma, --warmup.
void add_schedule_options(Parser& command, ScheduleOptions& options);
// --data, --image, --normalize.
void add_step_data_options(Parser& command, StepDataOptions& options);
// --store: for commands that read.
void add_store_option(Parser& command, std::string& path);
void add_environment_label_option(Parser& command, std::string& label);
// --store, --no-store, --env-label, --label, and --study-item, which 'study' gives: for commands
// that measure.
void add_store_options(Parser& command, StoreOptions& options);

}  // namespace ridgeline::cli
