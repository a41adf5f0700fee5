#include "cli/options.h"

#include "backends/registry.h"
#include "base/error.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/output.h"
#include "cli/parser.h"

namespace ridgeline::cli {

void help_without_subcommand(Parser& command, Action& action) {
  command.callback([&command, &action] {
    if (command.subcommand_given()) return;
    action = [&command] {
      print(command.help());
      return 0;
    };
  });
}

void add_json_option(Parser& command, bool& json) {
  command.heading(kOutputHeading);
  command.add_flag("--json", json, "Print the result as JSON; messages go to standard error");
}

void add_output_options(Parser& command, OutputOptions& options, const char* csv_meaning) {
  add_json_option(command, options.json);
  command.add_option("--csv FILE", options.csv, csv_meaning);
}

Option* add_model_option(Parser& command, std::string& model, const std::string& names,
                         const std::string& meaning) {
  std::vector<std::string> known;
  for (const ModelInfo& each : all_models()) known.emplace_back(each.name);
  command.heading(kModelHeading);
  return command.add_option(names, model, meaning)->values(std::move(known));
}

Option* add_backend_option(Parser& command, std::string& backend, const std::string& names,
                           const std::string& meaning) {
  std::vector<std::string> known = {"auto"};
  for (const Backend* each : all_backends()) known.emplace_back(each->name);
  command.heading(kExecutionHeading);
  return command.add_option(names, backend, meaning)->values(std::move(known));
}

void add_exchange_options(Parser& command, RankWork& ranks) {
  command.add_option(
      "--bucket MIB", ranks.bucket_mib,
      "Gradients that travel between ranks together [default: by the links that 'env "
      "--measure --ranks N' measured, else 1]");
  command.add_flag("--sync-batch-norm", ranks.synchronise_norms,
                   "Batch norms use the statistics of all ranks' samples");
  command
      .add_option("--reduce NAME", ranks.reduce,
                  "How gradients travel between ranks: fp32, or bf16 and fp16 with half the bytes; "
                  "they are added in fp32")
      ->values({"fp32", "bf16", "fp16"});
}

void add_threads_option(Parser& command, int& threads) {
  command.add_option("--threads N", threads, "Number of threads; 0 uses every available processor");
}

void add_device_options(Parser& command, RunOptions& options) {
  command.heading(kExecutionHeading);
  command
      .add_option("--device NAME", options.device,
                  "cpu, cuda:0 for the first NVIDIA GPU, opencl:0 for the first OpenCL device")
      ->values({"cpu", "cuda:0", "opencl:0"});
  command
      .add_option("--precision NAME", options.precision,
                  "Number format: fp32, tf32, bf16 or fp16; the CPU supports fp32 and, with AMX or "
                  "AVX512-BF16, bf16, OpenCL devices fp32 and fp16")
      ->values({"fp32", "tf32", "bf16", "fp16"});
}

void add_run_options(Parser& command, RunOptions& options, const char* backend_meaning) {
  add_model_option(command, options.model, "MODEL,--model NAME",
                   "Model to use: a name that 'ridgeline models' lists, or an .onnx file");
  add_backend_option(command, options.backend, "--backend NAME",
                     std::string(backend_meaning) + " [default: native on cpu, auto on cuda]");
  add_device_options(command, options);
  command.heading(kTrainingHeading);
  command.add_option("--batch N", options.batch, "Samples per step");
  add_plan_options(command, options);
}

void add_network_settings(Parser& command, RunOptions& options, const char* classes_default) {
  command.heading(kModelHeading);
  command
      .add_option("--set NAME=VALUE", options.settings,
                  "Change a setting of the model; can be repeated. 'ridgeline models' lists them")
      ->expected(1);
  command.add_option("--classes N", options.classes,
                     fmt::format("Number of classes [default: {}]", classes_default));
}

void add_init_option(Parser& command, RunOptions& options) {
  command.heading(kModelHeading);
  command
      .add_option("--init NAME", options.init,
                  "How to initialise the weights: pytorch (as PyTorch does) or he")
      ->values({"pytorch", "he"});
}

void add_step_options(Parser& command, RunOptions& options) {
  command.heading(kTrainingHeading);
  command
      .add_option("--freeze PATTERN", options.freeze,
                  "Do not train parameters whose name matches, such as 'features.*'; can be "
                  "repeated")
      ->expected(1);
  command.heading(kExecutionHeading);
  command.add_flag("--recompute", options.recompute,
                   "Use less memory: compute batch-norm outputs again in the backward pass "
                   "instead of keeping them");
  command
      .add_option("--no-pass NAME", options.disabled_passes,
                  "Turn off one stage of planning: fusion, winograd, slices, constants or inplace; "
                  "can be repeated")
      ->expected(1);
}

void add_plan_options(Parser& command, RunOptions& options) {
  add_network_settings(command, options, "the model's");
  add_init_option(command, options);
  add_execution_options(command, options);
}

void add_execution_options(Parser& command, RunOptions& options) {
  add_step_options(command, options);
  command.heading(kTrainingHeading);
  command.add_option("--seed N", options.seed, "Random seed of weights, data order and dropout");
  command.heading(kExecutionHeading);
  add_threads_option(command, options.threads);
  command.add_flag("--deterministic", options.deterministic,
                   "Use only kernels that give bit-identical results in every run");
  command.add_flag("--print-plan", options.print_plan,
                   "First print the plan: every kernel with its buffers");
  command.add_flag("--explain", options.explain,
                   "--print-plan, plus the reason each other kernel was rejected");
}

void add_decoder_option(Parser& command, std::string& decoder) {
  command
      .add_option("--decoder NAME", decoder,
                  "Where JPEG files are decoded: cpu; gpu (all but the entropy decoding, the same "
                  "pixels); nvjpeg (NVIDIA's hardware decoder) or nvjpeg-cuda, whose pixels differ "
                  "slightly; auto: gpu with an NVIDIA GPU, else cpu")
      ->values({"auto", "cpu", "gpu", "nvjpeg", "nvjpeg-cuda"});
}

void add_work_options(Parser& command, BenchWork& work, const char* optimizer_names) {
  command.heading(kDataHeading);
  command.add_option("--data NAME", work.data.data,
                     "synthetic, or any data that 'train --data' accepts");
  command.add_option("--normalize NAME", work.data.normalize,
                     "Pixel scaling: unit, mnist or MEAN,DEVIATION");
  command.add_flag("--loader", work.loader,
                   "Load a new batch in every iteration, as in training, instead of reusing one "
                   "batch on the device");
  command.add_option("--workers N", work.workers,
                     "Threads that decode images; 0 uses every available processor");
  add_decoder_option(command, work.decoder);
  add_plan_options(command, work.run);
  add_optimizer_options(command, work.optimizer, optimizer_names);
  command.add_flag("--inference", work.inference,
                   "Run inference, with batch norms folded, instead of training steps");
}

void add_optimizer_state_options(Parser& command, OptimizerOptions& options, const char* names) {
  command.heading(kTrainingHeading);
  command.add_option(names, options.name, "sgd, adam or adamw")->values({"sgd", "adam", "adamw"});
  command.add_option("--momentum NUMBER", options.momentum, "Momentum of sgd [default: 0.9]");
  command.add_flag("--nesterov", options.nesterov, "Use Nesterov momentum with sgd");
  command.add_option("--weight-decay NUMBER", options.weight_decay,
                     "Weight decay [default: 0; adamw: 0.01]");
}

void add_optimizer_options(Parser& command, OptimizerOptions& options, const char* names) {
  add_optimizer_state_options(command, options, names);
  command.add_option("--lr NUMBER", options.learning_rate,
                     "Learning rate [default: 0.01; adam and adamw: 0.001]");
  command.add_option("--label-smoothing NUMBER", options.label_smoothing,
                     "Label smoothing of the loss, from 0 to below 1");
}

void add_schedule_options(Parser& command, ScheduleOptions& options) {
  command.heading(kTrainingHeading);
  command
      .add_option("--schedule NAME", options.name,
                  "Learning rate over the epochs: constant, step or cosine, as in PyTorch")
      ->values({"constant", "step", "cosine"});
  command.add_option("--step-size N", options.step_size,
                     "Epochs between two drops of --schedule step [default: 30]");
  command.add_option("--gamma NUMBER", options.gamma,
                     "Factor of each drop of --schedule step [default: 0.1]");
  command.add_option("--warmup N", options.warmup,
                     "Epochs of linear warm-up, from 1% of the learning rate");
}

void add_step_data_options(Parser& command, StepDataOptions& options) {
  command.heading(kDataHeading);
  command.add_option("--data NAME", options.data,
                     "synthetic, or any data that 'train --data' accepts; only a part is used");
  command.add_option("--image CxHxW", options.image,
                     "Size of synthetic images [default: the model's]");
  command.add_option("--normalize NAME", options.normalize,
                     "Pixel scaling: unit, mnist or MEAN,DEVIATION");
}

void add_telemetry_option(Parser& command, double& hz) {
  command.heading(kMeasuringHeading);
  command.add_option("--telemetry HZ", hz, "Sensor readings per second; 0 turns them off");
}

void add_store_option(Parser& command, std::string& path) {
  command.heading(kStoreHeading);
  command.add_option("--store FILE", path, "The store: an SQLite file with all results");
}

void add_environment_label_option(Parser& command, std::string& label) {
  command.heading(kStoreHeading);
  command.add_option("--env-label TEXT", label,
                     "Your name for this machine, such as 'cloud CPU, 4 vCPU'");
}

void add_store_options(Parser& command, StoreOptions& options) {
  options.arguments = command_line_text();
  add_store_option(command, options.path);
  command.add_flag("--no-store", options.none, "Do not write to the store");
  command.add_option("--label TEXT", options.label, "Your name for these runs");
  add_environment_label_option(command, options.environment_label);
  // 'study' tells its commands where their runs belong.
  command
      .add_pair("--study-item", options.study, options.item,
                "The uuid of a study and the key of one of its items")
      ->hidden();
}

}  // namespace ridgeline::cli
