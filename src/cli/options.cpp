#include "cli/options.h"

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

void add_output_options(Parser& command, OutputOptions& options, const char* csv_meaning) {
  command.add_flag("--json", options.json, "Print one JSON document, messages on standard error");
  command.add_option("--csv FILE", options.csv, csv_meaning);
}

void add_device_options(Parser& command, RunOptions& options) {
  command.add_option("--device", options.device, "cpu, or cuda:0 for the first graphics processor");
  command.add_option("--precision", options.precision,
                     "fp32, tf32, bf16 or fp16; the cpu computes in fp32");
}

void add_run_options(Parser& command, RunOptions& options, const char* backend_meaning) {
  command.add_option("MODEL,--model", options.model, "Model, see 'ridgeline models'");
  command.add_option("--backend", options.backend,
                     std::string(backend_meaning) + " [cpu: native, cuda: auto]");
  add_device_options(command, options);
  command.add_option("--batch", options.batch, "Samples in a step");
  add_plan_options(command, options);
}

void add_plan_options(Parser& command, RunOptions& options) {
  command
      .add_option("--set NAME=VALUE", options.settings, "Set an option of the model, repeatable")
      ->expected(1);
  command.add_option("--init", options.init, "Initial weights: pytorch or he");
  command.add_option("--classes N", options.classes,
                     "Classes; labels must lie below [the model's own]");
  command.add_option("--seed", options.seed, "Seed of weights, data order and dropout");
  command.add_option("--threads", options.threads, "Threads; 0: one for each usable processor");
  command
      .add_option("--freeze PATTERN", options.freeze,
                  "Do not train parameters of such names, repeatable: 'features.*'")
      ->expected(1);
  command.add_flag("--recompute", options.recompute,
                   "Compute outputs of batch norms again instead of keeping them: less memory");
  command.add_flag("--deterministic", options.deterministic,
                   "Only kernels that give the same bits in every run");
  command.add_option("--no-pass NAME", options.disabled_passes, "Switch a pass of planning off")
      ->expected(1);
  command.add_flag("--print-plan", options.print_plan, "Print the plan first");
  command.add_flag("--explain", options.explain, "The same, and why other kernels were refused");
}

void add_work_options(Parser& command, BenchWork& work, const char* loader_meaning,
                      const char* optimizer_names) {
  add_plan_options(command, work.run);
  command.add_option("--data", work.data.data, "synthetic, or data as 'train' takes it");
  command.add_option("--normalize", work.data.normalize,
                     "unit, mnist or MEAN,DEVIATION, as in 'train'");
  command.add_flag("--loader", work.loader, loader_meaning);
  command.add_option("--workers", work.workers,
                     "Threads that decode images; 0: one for each usable processor");
  add_optimizer_options(command, work.optimizer, optimizer_names);
}

void add_optimizer_options(Parser& command, OptimizerOptions& options, const char* names) {
  command.add_option(names, options.name, "sgd, adam or adamw");
  command.add_option("--lr RATE", options.learning_rate,
                     "Learning rate [sgd: 0.01, adam and adamw: 0.001]");
  command.add_option("--momentum NUMBER", options.momentum, "Momentum of sgd [0.9]");
  command.add_flag("--nesterov", options.nesterov, "Nesterov's momentum for sgd");
  command.add_option("--weight-decay DECAY", options.weight_decay,
                     "Weight decay [sgd and adam: 0, adamw: 0.01]");
  command.add_option("--label-smoothing", options.label_smoothing, "Label smoothing of the loss");
}

void add_schedule_options(Parser& command, ScheduleOptions& options) {
  command.add_option(
      "--schedule", options.name,
      "Learning rate over the epochs: constant, step or cosine (PyTorch's formulas)");
  command.add_option("--step-size N", options.step_size, "Epochs between two drops of step [30]");
  command.add_option("--gamma FACTOR", options.gamma, "Factor of a drop of step [0.1]");
  command.add_option(
      "--warmup", options.warmup,
      "Epochs in which the rate rises, from a hundredth, before the schedule begins");
}

void add_step_data_options(Parser& command, StepDataOptions& options) {
  command.add_option("--data", options.data,
                     "synthetic, or data as 'train' takes it; a part of it is used");
  command.add_option("--image CxHxW", options.image, "Size of synthetic images [the model's own]");
  command.add_option("--normalize", options.normalize,
                     "unit, mnist or MEAN,DEVIATION, as in 'train'");
}

void add_store_option(Parser& command, StoreOptions& options) {
  command.add_option("--store FILE", options.path, "The file with the results");
}

void add_store_options(Parser& command, StoreOptions& options) {
  options.arguments = command_line_text();
  add_store_option(command, options);
  command.add_flag("--no-store", options.none, "Write nothing into the store, as --store none");
  command.add_option("--env-label TEXT", options.environment_label,
                     "Your name for this machine, for example 'cloud CPU, 4 vCPU'");
  command.add_option("--label TEXT", options.label, "Your name for these runs");
  // Not for people: 'study' tells its commands where their runs belong. Not shown in the help.
  command
      .add_pair("--study-item", options.study, options.item,
                "The uuid of a study and the key of an item of it")
      ->hidden();
}

}  // namespace ridgeline::cli
