// ridgeline train: trains a model and evaluates it.

#include "lab/train.h"

#include "base/error.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/start_ranks.h"
#include "cli/tables.h"
#include "cli/terminal.h"
#include "cli/train_output.h"
#include "ranks/ranks.h"

namespace ridgeline::cli {
namespace {

struct TrainOptions {
  TrainRequest request;
  OutputOptions output;
  std::optional<std::int64_t> restarts;
};

// Of the ranks but the first: they say nothing, and stop when asked to.
class SilentRank final : public TrainListener {
 public:
  [[nodiscard]] bool go_on() override { return !interrupt_.raised(); }

 private:
  InterruptGuard interrupt_;
};

// The result of a rank but the first.
int run_silent_rank(const TrainOptions& options) {
  SilentRank silent;
  const TrainReport report = run_train(options.request, silent);
  if (!report.error.empty()) throw Error(report.error_kind, report.error);
  return 0;
}

// Prints the table as it grows.
class Printer final : public TrainListener {
 public:
  explicit Printer(bool json) : json_(json), terminal_(json) {}

  void note(const std::string& line) override { terminal_.note(line); }
  void plan(const std::string& text) override { terminal_.plan(text); }
  void progress(std::int64_t done, std::int64_t total, const char* what) override {
    terminal_.progress(done, total, what);
  }
  [[nodiscard]] bool go_on() override { return terminal_.go_on(); }

  void begun(const TrainReport& report, const std::vector<EpochResult>& former) override {
    config_ = report.config;
    show(json_ ? report.story : fitted(header_text(report)) + '\n');
    show(table_header(config_));
    for (const EpochResult& epoch : former) show(table_row(config_, epoch));
  }
  void epoch(const EpochResult& result) override {
    terminal_.clear();
    show(table_row(config_, result));
  }

  void clear() { terminal_.clear(); }
  [[nodiscard]] int signal() const { return terminal_.signal(); }

 private:
  // With --json, standard output is for the document.
  void show(const std::string& text) const { json_ ? message(text) : print(text); }

  bool json_;
  Terminal terminal_;
  TrainConfig config_;
};

int run_train_command(const TrainOptions& options) {
  const OutputOptions& output = options.output;
  const std::optional<std::int64_t>& ranks = options.request.ranks.count;
  constexpr std::int64_t kMost = 65536;
  if (ranks && (*ranks < 1 || *ranks > kMost)) {
    bad_input("--ranks {}: must be between 1 and {}", *ranks, kMost);
  }
  if (options.restarts && !ranks) bad_input("--restarts belongs to --ranks");
  if (ranks && *ranks > 1 && launched_ranks() == 1) {
    return start_ranks({.count = static_cast<int>(*ranks),
                        .restarts = options.restarts.value_or(0),
                        .checkpoint = options.request.checkpoint.folder});
  }
  if (launched_ranks() > 1) {
    join_ranks();
    if (!joined_ranks()->first()) return run_silent_rank(options);
  }
  check_writable(output.csv);
  Printer printer(output.json);
  const TrainReport report = run_train(options.request, printer);
  printer.clear();
  if (!output.csv.empty()) write_file_atomically(output.csv, train_csv(report));
  print(output.json ? train_json(report) : summary_text(report));
  if (!report.error.empty()) throw Error(report.error_kind, report.error);
  if (!report.store_trouble.empty()) {
    message(fmt::format("ridgeline: cannot write to the store: {}\n", report.store_trouble));
    return 1;
  }
  if (report.checkpoint_failed) return 1;
  return report.result.interrupted ? 128 + printer.signal() : 0;
}

void add_checkpoint_options(Parser& command, CheckpointOptions& options) {
  command.heading("Checkpoints");
  command.add_option("--weights FILE", options.weights,
                     "Start with the weights of a .safetensors, .pth or .pt file; a last layer "
                     "with another number of classes starts anew");
  command.add_option("--checkpoint DIR", options.folder,
                     "Save a checkpoint in DIR after every epoch and when interrupted");
  command.add_option("--checkpoint-every N", options.every, "Also save one every N steps");
  command.add_flag("--resume", options.resume,
                   "Continue from the last checkpoint in DIR, with bit-identical results");
}

void add_rank_options(Parser& command, TrainOptions& options) {
  RankOptions& ranks = options.request.ranks;
  command.heading("Ranks");
  command.add_option("--ranks N", ranks.count,
                     "Processes that train together; they are started with mpirun, unless mpirun "
                     "or srun has started this one");
  command.add_option("--restarts N", options.restarts,
                     "How often to start again from the last checkpoint when a rank fails");
  command.add_option("--rank-timeout SECONDS", ranks.timeout,
                     "End the training when a rank has not answered for so long");
  command.add_option(
      "--bucket MIB", ranks.bucket_mib,
      "Gradients that travel between ranks together [default: by the links that 'env "
      "--measure --ranks N' measured, else 1]");
  command
      .add_option("--reduce NAME", ranks.reduce,
                  "How gradients travel between ranks: fp32, or bf16 and fp16 with half the bytes; "
                  "they are added in fp32")
      ->values({"fp32", "bf16", "fp16"});
  command.add_flag("--sync-batch-norm", ranks.synchronise_norms,
                   "Batch norms use the statistics of all ranks' samples");
}

void add_train_record_options(Parser& command, TrainRecordOptions& options) {
  add_telemetry_option(command, options.telemetry_hz);
  add_store_options(command, options.store);
}

void add_tensorboard_options(Parser& command, TrainRecordOptions& options) {
  command.heading(kOutputHeading);
  command.add_option("--tensorboard DIR", options.tensorboard,
                     "Write TensorBoard event files into DIR during training");
  command.add_option("--tensorboard-every N", options.tensorboard_every,
                     "Steps between two loss values in them");
}

}  // namespace

void add_train(Parser& program, Action& action) {
  auto options = std::make_shared<TrainOptions>();
  TrainRequest& request = options->request;
  Parser* command = program.add_subcommand("train", "Train a model and evaluate it");
  add_model_option(*command, request.run.model, "MODEL,--model NAME",
                   "Model to train: a name that 'ridgeline models' lists, or an .onnx file");
  add_network_settings(*command, request.run, "the data's");
  add_init_option(*command, request.run);
  command->heading(kDataHeading);
  command->add_option("--data NAME", request.data,
                      "A dataset of 'ridgeline data list', a folder of images, of IDX or of CIFAR "
                      "files, a .csv file, a pack, or synthetic[:CxHxW[:CLASSES[:COUNT]]]");
  command->add_option("--image HxW", request.image,
                      "Crop and resize images to this size [default: 224x224 for photographs, "
                      "64x64 for Tiny-ImageNet, else their own size]");
  command->add_option("--normalize NAME", request.normalize,
                      "Pixel scaling: unit (pixel / 255), mnist (mean 0.1307, deviation 0.3081), "
                      "imagenet, or MEAN,DEVIATION [default: imagenet for photographs, else unit]");
  command
      ->add_option("--augment NAME", request.augment,
                   "Random changes of training images: none, flip (mirror), or crop (resized crop "
                   "and flip) [default: crop for photographs, else none]")
      ->values({"none", "flip", "crop"});
  command->add_flag("--flip", request.flip, "Mirror training images at random");
  command->add_option("--limit N", request.limit,
                      "Train on a fixed random sample of N images, evenly over the classes");
  command->add_option("--validation N", request.validation,
                      "Test on N training samples that are held out; a number, or a share below 1");
  command->add_option("--workers N", request.workers,
                      "Threads that decode images; 0 uses every available processor");
  add_decoder_option(*command, request.decoder);
  command->add_flag("--strict", request.strict,
                    "Stop at the first broken image instead of replacing it");
  command->heading(kTrainingHeading);
  command->add_option("--epochs N", request.epochs, "Passes over the training data");
  command->add_option("--batch N", request.run.batch, "Samples per step");
  command
      ->add_option("--last-batch NAME", request.last_batch,
                   "The incomplete last batch of an epoch: smaller (use it), drop, or repeat "
                   "(fill it up)")
      ->values({"smaller", "drop", "repeat"});
  command->add_flag("--full-batch", request.full_batch,
                    "Train on the whole training set as one batch");
  command->add_option("--iterations N", request.iterations, "Steps with --full-batch");
  add_optimizer_options(*command, request.optimizer);
  add_schedule_options(*command, request.schedule);
  command->add_option("--micro-batch N", request.micro_batch,
                      "Compute at most N samples at a time and accumulate their gradients "
                      "[default: the whole batch]");
  command->add_option("--clip-norm NUMBER", request.clip_norm,
                      "Shrink the gradients when their norm exceeds this [default: never]");
  command->add_option("--loss-scale NUMBER", request.loss_scale,
                      "First loss scale with --precision fp16 [default: 65536]");
  add_backend_option(*command, request.run.backend, "--backend NAME",
                     "Backend, or auto; 'ridgeline backends' lists them [default: native on cpu, "
                     "auto on cuda]");
  add_device_options(*command, request.run);
  add_execution_options(*command, request.run);
  command->heading("Evaluation");
  command->add_option("--eval-every N", request.eval_every,
                      "Epochs between evaluations [default: 1; with --full-batch 50 iterations]");
  command->add_option("--eval-batch N", request.eval_batch,
                      "Samples per evaluation step [default: as --batch]");
  command->add_option("--target-accuracy SHARE", request.target_accuracy,
                      "Stop when the test accuracy reaches this, such as 0.98 or 98%, and report "
                      "when it did");
  command->add_flag("--confusion", request.confusion,
                    "Show the confusion matrix, precision and recall at the end");
  add_checkpoint_options(*command, request.checkpoint);
  add_rank_options(*command, *options);
  add_train_record_options(*command, request.record);
  add_output_options(*command, options->output, "Write one row per epoch");
  add_table_options(*command);
  add_tensorboard_options(*command, request.record);
  command->examples(
      {"ridgeline train mnist_cnn --epochs 3",
       "ridgeline train mnist_cnn --data mnist --batch 512 --lr 0.05 --normalize mnist",
       "ridgeline train mlp --data mnist --validation 1000 --full-batch --iterations 500 --lr 0.1",
       "ridgeline train mnist_cnn --data photos/ --image 64x64 --workers 4",
       "ridgeline train mlp --set hidden=64,32 --optimizer adam --target-accuracy 85% --json",
       "ridgeline train mnist_cnn --tensorboard runs/first --epochs 20",
       "ridgeline train resnet18 --data photos/ --ranks 2 --checkpoint run2 --restarts 3",
       "ridgeline train mnist_cnn --schedule cosine --warmup 2 --checkpoint run1",
       "ridgeline train mnist_cnn --schedule cosine --warmup 2 --checkpoint run1 --resume"});
  command->callback(
      [options, &action] { action = [options] { return run_train_command(*options); }; });
}

}  // namespace ridgeline::cli
