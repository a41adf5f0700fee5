#include "cli/options.h"

#include "base/error.h"
#include "cli/command_line.h"
#include "cli/parser.h"

namespace ridgeline::cli {

void add_output_options(Parser& command, OutputOptions& options, const char* csv_meaning) {
  command.add_flag("--json", options.json, "Print one JSON document, messages on standard error");
  command.add_option("--csv", options.csv, csv_meaning)->type_name("FILE");
}

void add_device_options(Parser& command, RunOptions& options) {
  command.add_option("--device", options.device, "cpu, or cuda:0 for the first graphics processor")
      ->capture_default_str();
  command
      .add_option("--precision", options.precision,
                  "fp32, tf32, bf16 or fp16; the cpu computes in fp32")
      ->capture_default_str();
}

void add_run_options(Parser& command, RunOptions& options, const char* backend_meaning) {
  command.add_option("MODEL,--model", options.model, "Model, see 'ridgeline models'");
  command.add_option("--backend", options.backend,
                     std::string(backend_meaning) + " [cpu: native, cuda: auto]");
  add_device_options(command, options);
  command.add_option("--batch", options.batch, "Samples in a step")->capture_default_str();
  add_plan_options(command, options);
}

void add_plan_options(Parser& command, RunOptions& options) {
  command.add_option("--set", options.settings, "Set an option of the model, repeatable")
      ->type_name("NAME=VALUE")
      ->expected(1)
      ->take_all();
  command.add_option("--init", options.init, "Initial weights: pytorch or he")
      ->capture_default_str();
  command
      .add_option("--classes", options.classes, "Classes; labels must lie below [the model's own]")
      ->type_name("N");
  command.add_option("--seed", options.seed, "Seed of weights, data order and dropout")
      ->capture_default_str();
  command.add_option("--threads", options.threads, "Threads; 0: one for each usable processor")
      ->capture_default_str();
  command
      .add_option("--freeze", options.freeze,
                  "Do not train parameters of such names, repeatable: 'features.*'")
      ->type_name("PATTERN")
      ->expected(1)
      ->take_all();
  command.add_flag("--recompute", options.recompute,
                   "Compute outputs of batch norms again instead of keeping them: less memory");
  command.add_flag("--deterministic", options.deterministic,
                   "Only kernels that give the same bits in every run");
  command.add_option("--no-pass", options.disabled_passes, "Switch a pass of planning off")
      ->type_name("NAME")
      ->expected(1)
      ->take_all();
  command.add_flag("--print-plan", options.print_plan, "Print the plan first");
  command.add_flag("--explain", options.explain, "The same, and why other kernels were refused");
}

void add_optimizer_options(Parser& command, OptimizerOptions& options) {
  command.add_option("--optimizer", options.name, "sgd, adam or adamw")->capture_default_str();
  command
      .add_option("--lr", options.learning_rate, "Learning rate [sgd: 0.01, adam and adamw: 0.001]")
      ->type_name("RATE");
  command.add_option("--momentum", options.momentum, "Momentum of sgd [0.9]")->type_name("NUMBER");
  command.add_flag("--nesterov", options.nesterov, "Nesterov's momentum for sgd");
  command
      .add_option("--weight-decay", options.weight_decay,
                  "Weight decay [sgd and adam: 0, adamw: 0.01]")
      ->type_name("DECAY");
  command.add_option("--label-smoothing", options.label_smoothing, "Label smoothing of the loss")
      ->capture_default_str();
}

void add_schedule_options(Parser& command, ScheduleOptions& options) {
  command
      .add_option("--schedule", options.name,
                  "Learning rate over the epochs: constant, step or cosine (PyTorch's formulas)")
      ->capture_default_str();
  command.add_option("--step-size", options.step_size, "Epochs between two drops of step [30]")
      ->type_name("N");
  command.add_option("--gamma", options.gamma, "Factor of a drop of step [0.1]")
      ->type_name("FACTOR");
  command
      .add_option("--warmup", options.warmup,
                  "Epochs in which the rate rises, from a hundredth, before the schedule begins")
      ->capture_default_str();
}

void add_step_data_options(Parser& command, StepDataOptions& options) {
  command
      .add_option("--data", options.data,
                  "synthetic, or data as 'train' takes it; a part of it is used")
      ->capture_default_str();
  command.add_option("--image", options.image, "Size of synthetic images [the model's own]")
      ->type_name("CxHxW");
  command
      .add_option("--normalize", options.normalize, "unit, mnist or MEAN,DEVIATION, as in 'train'")
      ->capture_default_str();
}

void add_store_option(Parser& command, StoreOptions& options) {
  command.add_option("--store", options.path, "The file with the results")
      ->type_name("FILE")
      ->capture_default_str();
}

void add_store_options(Parser& command, StoreOptions& options) {
  options.arguments = command_line_text();
  add_store_option(command, options);
  command.add_flag("--no-store", options.none, "Write nothing into the store, as --store none");
  command
      .add_option("--env-label", options.environment_label,
                  "Your name for this machine, for example 'cloud CPU, 4 vCPU'")
      ->type_name("TEXT");
  command.add_option("--label", options.label, "Your name for these runs")->type_name("TEXT");
  // Not for people: 'study' tells its commands where their runs belong. Not shown in the help.
  command
      .add_pair("--study-item", options.study, options.item,
                "The uuid of a study and the key of an item of it")
      ->hidden();
}

}  // namespace ridgeline::cli
