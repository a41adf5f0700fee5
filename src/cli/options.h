#pragma once

// The options of lab/options.h on the command line, under the same names everywhere.

#include "lab/bench_matrix.h"
#include "lab/options.h"
#include "lab/step_data.h"
#include "lab/store_options.h"

namespace ridgeline::cli {

class Parser;

// --json and --csv.
struct OutputOptions {
  bool json = false;
  std::string csv;
};
void add_output_options(Parser& command, OutputOptions& options, const char* csv_meaning);

// --device, --precision.
void add_device_options(Parser& command, RunOptions& options);
// --set, --init, --classes, --seed, --threads, --freeze, --recompute, --deterministic, --no-pass,
// --print-plan, --explain.
void add_plan_options(Parser& command, RunOptions& options);
// MODEL, --model, --backend, --device, --precision, --batch and the plan's options.
void add_run_options(Parser& command, RunOptions& options, const char* backend_meaning);
// --optimizer, --lr, --momentum, --nesterov, --weight-decay, --label-smoothing.
void add_optimizer_options(Parser& command, OptimizerOptions& options,
                           const char* names = "--optimizer");
// What bench and profile measure: the plan's options, --data, --normalize, --loader, --workers and
// the optimizer's.
void add_work_options(Parser& command, BenchWork& work, const char* loader_meaning,
                      const char* optimizer_names = "--optimizer");
// --schedule, --step-size, --gamma, --warmup.
void add_schedule_options(Parser& command, ScheduleOptions& options);
// --data, --image, --normalize.
void add_step_data_options(Parser& command, StepDataOptions& options);
// --store: for commands that read.
void add_store_option(Parser& command, StoreOptions& options);
// --store, --no-store, --env-label, --label, and --study-item, which 'study' gives: for commands
// that measure.
void add_store_options(Parser& command, StoreOptions& options);

}  // namespace ridgeline::cli
