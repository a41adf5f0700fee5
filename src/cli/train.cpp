// ridgeline train: trains a model and evaluates it.

#include "lab/train.h"

#include "base/error.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/terminal.h"
#include "cli/train_output.h"

namespace ridgeline::cli {
namespace {

struct TrainOptions {
  TrainRequest request;
  OutputOptions output;
};

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
    if (json_) {
      message(report.story);
      return;
    }
    print(header_text(report) + '\n' + table_header(config_));
    for (const EpochResult& epoch : former) print(table_row(config_, epoch));
  }
  void epoch(const EpochResult& result) override {
    terminal_.clear();
    if (!json_) print(table_row(config_, result));
  }

  void clear() { terminal_.clear(); }
  [[nodiscard]] int signal() const { return terminal_.signal(); }

 private:
  bool json_;
  Terminal terminal_;
  TrainConfig config_;
};

int run_train_command(const TrainOptions& options) {
  const OutputOptions& output = options.output;
  check_writable(output.csv);
  Printer printer(output.json);
  const TrainReport report = run_train(options.request, printer);
  printer.clear();
  if (!output.csv.empty()) write_file_atomically(output.csv, train_csv(report));
  print(output.json ? train_json(report) : summary_text(report));
  if (!report.error.empty()) throw Error(report.error_kind, report.error);
  if (!report.store_trouble.empty()) {
    message(fmt::format("ridgeline: the store could not be written: {}\n", report.store_trouble));
    return 1;
  }
  if (report.checkpoint_failed) return 1;
  return report.result.interrupted ? 128 + printer.signal() : 0;
}

void add_checkpoint_options(Parser& command, CheckpointOptions& options) {
  command.add_option("--weights FILE", options.weights,
                     "Begin with the weights of a .safetensors, .pth or .pt file; a last layer for "
                     "another number of classes begins anew");
  command.add_option("--checkpoint DIR", options.folder,
                     "Save a checkpoint there after every epoch and when interrupted");
  command.add_option("--checkpoint-every N", options.every, "Save one every N steps too");
  command.add_flag("--resume", options.resume,
                   "Go on from the last checkpoint in the folder, bit for bit");
}

void add_train_record_options(Parser& command, TrainRecordOptions& options) {
  add_store_options(command, options.store);
  command.add_option("--telemetry", options.telemetry_hz,
                     "Readings of sensors in a second; 0: none");
  command.add_option("--tensorboard DIR", options.tensorboard,
                     "Write event files for TensorBoard into this folder as the training goes");
  command.add_option("--tensorboard-every", options.tensorboard_every,
                     "Steps between two losses in them");
}

}  // namespace

void add_train(Parser& program, Action& action) {
  auto options = std::make_shared<TrainOptions>();
  TrainRequest& request = options->request;
  Parser* command = program.add_subcommand("train", "Train a model and evaluate it");
  add_run_options(*command, request.run, "Provider, see 'ridgeline backends', or auto");
  command->add_option(
      "--data", request.data,
      "A name of 'ridgeline data list', synthetic[:CxHxW[:CLASSES[:COUNT]]], a folder "
      "with images, IDX or CIFAR files, a .csv file or a pack");
  command->add_option("--validation N", request.validation,
                      "Hold out samples (a number, or a share below 1) and test on them");
  command->add_option("--limit N", request.limit,
                      "Train on a fixed random sample of N, spread over the classes");
  command->add_option(
      "--normalize NAME", request.normalize,
      "unit: pixels / 255; mnist: mean 0.1307, deviation 0.3081; imagenet: its means "
      "and deviations; or MEAN,DEVIATION [photographs: imagenet, else unit]");
  command->add_option("--image HxW", request.image,
                      "The network's input; images are cropped and resized to it [photographs: "
                      "224x224, Tiny-ImageNet: 64x64, others: their own size]");
  command->add_option(
      "--augment KIND", request.augment,
      "none, flip: mirror at random, crop: random resized crop and flip [photographs: "
      "crop, else none]");
  command->add_option("--workers", request.workers,
                      "Threads that decode images; 0: one for each usable processor");
  command->add_flag("--strict", request.strict,
                    "End at the first broken image instead of replacing it");
  command->add_flag("--flip", request.flip, "Mirror training images at random");
  command->add_option("--epochs", request.epochs, "Passes over the training data");
  add_optimizer_options(*command, request.optimizer);
  add_schedule_options(*command, request.schedule);
  add_checkpoint_options(*command, request.checkpoint);
  command->add_option("--last-batch", request.last_batch,
                      "The last, incomplete batch of an epoch: smaller, drop or repeat");
  command->add_option("--loss-scale SCALE", request.loss_scale,
                      "What the loss scale of fp16 begins with [65536]");
  command->add_flag("--full-batch", request.full_batch,
                    "The whole training set is one batch, uploaded once");
  command->add_option("--iterations", request.iterations, "Steps in full-batch mode");
  command->add_option("--eval-batch", request.eval_batch, "Batch of evaluations [as --batch]");
  command->add_option("--eval-every", request.eval_every,
                      "Epochs between evaluations [1; full batch: 50 iterations]");
  command->add_option("--target-accuracy SHARE", request.target_accuracy,
                      "Stop when a test reaches it, and tell when that was; 0.98 or 98%");
  command->add_flag("--confusion", request.confusion,
                    "Print the confusion matrix, precision and recall at the end");
  add_train_record_options(*command, request.record);
  add_output_options(*command, options->output, "Write one row for each epoch");
  command->footer(
      "Examples:\n"
      "  ridgeline train mnist_cnn --epochs 3\n"
      "  ridgeline train mnist_cnn --data mnist --batch 512 --lr 0.05 --normalize mnist\n"
      "  ridgeline train mlp --data mnist --validation 1000 --full-batch --iterations 500 --lr "
      "0.1\n"
      "  ridgeline train mnist_cnn --data photos/ --image 64x64 --workers 4\n"
      "  ridgeline train mlp --set hidden=64,32 --optimizer adam --target-accuracy 85% --json\n"
      "  ridgeline train mnist_cnn --tensorboard runs/first --epochs 20\n"
      "  ridgeline train mnist_cnn --schedule cosine --warmup 2 --checkpoint run1\n"
      "  ridgeline train mnist_cnn --schedule cosine --warmup 2 --checkpoint run1 --resume");
  command->callback(
      [options, &action] { action = [options] { return run_train_command(*options); }; });
}

}  // namespace ridgeline::cli
