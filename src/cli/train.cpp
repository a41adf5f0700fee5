// ridgeline train: trains a model and evaluates it.

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>
#include <optional>
#include <thread>

#include "base/error.h"
#include "base/parallel.h"
#include "base/reason.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/train_checkpoint.h"
#include "cli/train_output.h"
#include "cli/train_record.h"
#include "data/catalog.h"
#include "data/sample_reader.h"
#include "lab/step_times.h"

namespace ridgeline::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kFullBatchPace = 50;  // iterations between two rows of the table
constexpr double kUsualValidation = 0.1;     // share held out of data without a test part

struct TrainOptions {
  RunOptions run;
  OptimizerOptions optimizer;
  ScheduleOptions schedule;
  CheckpointOptions checkpoint;
  TrainRecordOptions record;
  OutputOptions output;
  std::string data = "fashion-mnist";
  std::string validation;  // a number of samples or a share; empty: the dataset's own test part
  std::optional<std::int64_t> limit;
  std::int64_t epochs = 10, iterations = 500;
  bool full_batch = false;
  std::optional<std::int64_t> eval_batch, eval_every;
  std::string last_batch = "smaller";
  std::string normalize;  // empty: what is usual for the data
  std::string image;      // HxW; empty: what is usual for the data
  std::string augment;    // empty: what is usual for the data
  int workers = 0;        // 0: one for each usable processor
  bool strict = false;
  bool flip = false, confusion = false;
  std::string target_accuracy;
  std::optional<double> loss_scale;
};

double parse_number(const char* option, std::string_view text) {
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) {
    bad_input("{} '{}': is no number", option, text);
  }
  return number;
}

// 0.98, 98 or 98%.
double parse_accuracy(const std::string& text) {
  const bool percent = text.ends_with('%');
  const double number =
      parse_number("--target-accuracy", std::string_view(text).substr(0, text.size() - percent));
  const double share = percent || number > 1.0 ? number / 100.0 : number;
  if (!(share > 0.0 && share <= 1.0)) {
    bad_input("--target-accuracy {}: must lie between 0 and 1, or between 0% and 100%", text);
  }
  return share;
}

FrameSize frame_of(const TrainOptions& options) {
  if (options.image.empty()) return {};
  return parse_frame(options.image);
}

Split load_data(const TrainOptions& options) {
  const auto seed = static_cast<std::uint64_t>(options.run.seed);
  Split split = load_dataset(
      options.data, {.classes = static_cast<std::int32_t>(options.run.classes.value_or(10)),
                     .seed = seed,
                     .image = frame_of(options)});
  if (!options.validation.empty()) {
    const double amount = parse_number("--validation", options.validation);
    if (amount < 1.0) {
      split = hold_out_fraction(split.train, amount, seed);
    } else if (amount == std::floor(amount) && amount < 1e15) {
      split = hold_out(split.train, static_cast<std::int64_t>(amount), seed);
    } else {
      bad_input("--validation {}: must be a whole number of samples or a share below 1",
                options.validation);
    }
  } else if (split.test.empty()) {
    split = hold_out_fraction(split.train, kUsualValidation, seed);
    message(fmt::format("note: the data has no test part; {} samples are held out (--validation)\n",
                        count_text(split.test.count())));
  }
  if (options.limit) split.train = limit(std::move(split.train), *options.limit);
  if (options.full_batch) split.train = in_memory(split.train, thread_count());
  return split;
}

int usable_processors() {
  return static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
}

// What depends on the kind of data unless it was said.
void fit_input(TrainConfig& config, const TrainOptions& options, const Dataset& data) {
  static constexpr std::array<std::string_view, 3> kNames = {"none", "flip", "crop"};
  const std::string usual = data.photos && !options.full_batch ? "crop" : "none";
  const std::string augment = options.augment.empty() ? usual : options.augment;
  const std::size_t choice = choice_of("--augment", augment, kNames);
  config.crop = choice == 2;
  config.step.flip = options.flip || choice != 0;
  config.strict_images = options.strict;
  if (options.workers < 0 || options.workers > 256) {
    bad_input("--workers {}: must lie between 0 and 256", options.workers);
  }
  config.workers = options.workers > 0 ? options.workers : usable_processors();
  set_normalisation(config.step,
                    options.normalize.empty() ? usual_normalisation(data) : options.normalize);
}

LastBatch last_batch_of(const std::string& name) {
  static constexpr std::array<std::string_view, 3> kNames = {"smaller", "drop", "repeat"};
  return static_cast<LastBatch>(choice_of("--last-batch", name, kNames));
}

void check_positive(const char* option, const std::optional<std::int64_t>& value) {
  if (value && *value < 1) bad_input("{} {}: must be at least 1", option, *value);
}

// All that can be checked without the data.
TrainConfig config_of(const TrainOptions& options) {
  apply(options.run);
  TrainConfig config;
  config.step.model = model_config(options.run);
  config.step.batch = options.run.batch;
  config.step.freeze = options.run.freeze;
  config.step.recompute = options.run.recompute;
  config.step.optimizer = optimizer_attributes(options.optimizer);
  config.step.label_smoothing = options.optimizer.label_smoothing;
  config.plan = plan_request(options.run, options.run.backend);
  config.full_batch = options.full_batch;
  config.epochs = options.full_batch ? options.iterations : options.epochs;
  config.learning_rate = learning_rate(options.optimizer);
  config.schedule = schedule_of(options.schedule);
  config.seed = static_cast<std::uint64_t>(options.run.seed);
  config.last_batch = last_batch_of(options.last_batch);
  check_positive("--eval-batch", options.eval_batch);
  check_positive("--eval-every", options.eval_every);
  check_positive("--limit", options.limit);
  config.eval_batch = options.eval_batch.value_or(0);
  config.eval_every = options.eval_every.value_or(options.full_batch ? kFullBatchPace : 1);
  if (options.loss_scale) {
    if (options.run.precision != "fp16") bad_input("--loss-scale belongs to --precision fp16");
    if (!(*options.loss_scale > 0.0) || !std::isfinite(*options.loss_scale)) {
      bad_input("--loss-scale {}: must be above 0", *options.loss_scale);
    }
    config.first_loss_scale = *options.loss_scale;
  }
  if (!options.target_accuracy.empty()) {
    config.target_accuracy = parse_accuracy(options.target_accuracy);
  }
  return config;
}

// Prints the table as it grows, and keeps what was reached in case the training fails.
class Printer final : public TrainObserver {
 public:
  Printer(Trainer& trainer, const Split& data, TrainCheckpoints& checkpoints, TrainRecord& record,
          bool quiet)
      : trainer_(trainer),
        config_(trainer.config()),
        data_(data),
        checkpoints_(checkpoints),
        record_(record),
        quiet_(quiet) {
    reached_.epochs = checkpoints.former_epochs();
  }

  void on_step(const StepProgress& step) override {
    reached_.steps = step.done;
    record_.add(step);
    bar_.show(step.done, step.total, config_.full_batch ? "iteration" : "step");
  }
  void on_epoch(const EpochResult& epoch) override {
    reached_.epochs.push_back(epoch);
    record_.add(epoch);
    warn_of_board();
    if (epoch.test_accuracy) {
      reached_.final_test_accuracy = epoch.test_accuracy;
      reached_.final_test_loss = epoch.test_loss;
    }
    bar_.clear();
    if (!quiet_) print(table_row(config_, epoch));
  }
  void on_warning(const std::string& text) override {
    reached_.warnings.push_back(text);
    bar_.clear();
    message(fmt::format("warning: {}\n", text));
  }
  void on_alarm(const TrainAlarm& alarm) override {
    record_.add(alarm);
    TrainObserver::on_alarm(alarm);
  }
  void on_checkpoint(const TrainProgress& progress) override {
    const std::string trouble = checkpoints_.save(trainer_, data_, progress);
    if (!trouble.empty()) on_warning(trouble);
  }
  [[nodiscard]] bool stop() override { return interrupt_.raised(); }

  [[nodiscard]] const TrainResult& reached() const { return reached_; }
  [[nodiscard]] int signal() const { return interrupt_.signal(); }
  void clear() { bar_.clear(); }
  // Once.
  void warn_of_board() {
    const std::string trouble = record_.board_trouble();
    if (trouble.empty() || board_warned_) return;
    board_warned_ = true;
    on_warning("nothing more is written for TensorBoard: " + trouble);
  }

 private:
  Trainer& trainer_;
  const TrainConfig& config_;
  const Split& data_;
  TrainCheckpoints& checkpoints_;
  TrainRecord& record_;
  bool quiet_;
  ProgressBar bar_;
  InterruptGuard interrupt_;
  TrainResult reached_;
  bool board_warned_ = false;
};

void print_plans(const RunOptions& options, bool to_stderr, Trainer& trainer) {
  if (!options.print_plan && !options.explain) return;
  const Session& session = trainer.runner().session();
  std::string text = "plan of a training step\n" +
                     session.plan(trainer.training_plan()).text(options.explain) + '\n';
  if (trainer.evaluation_plan()) {
    text += "plan of an evaluation step\n" +
            session.plan(*trainer.evaluation_plan()).text(options.explain) + '\n';
  }
  if (to_stderr) {
    message(text);
  } else {
    print(text);
  }
}

void give_out(const TrainReport& report, const OutputOptions& output) {
  if (!output.csv.empty()) write_file_atomically(output.csv, train_csv(report));
  print(output.json ? train_json(report) : summary_text(report));
}

int run_train(const TrainOptions& options) {
  const OutputOptions& output = options.output;
  TrainConfig config = config_of(options);
  check_writable(output.csv);
  check(options.record);
  TrainCheckpoints checkpoints(options.checkpoint);
  std::unique_ptr<Device> device = make_device(options.run.device);
  config.step.precision = precision_of(options.run, *device);

  const Clock::time_point start = Clock::now();
  const Split split = load_data(options);
  fit_to_data(config.step.model, split.train);
  fit_input(config, options, split.train);
  checkpoints.configure(config, split);
  TrainReport report;
  report.load_seconds = std::chrono::duration<double>(Clock::now() - start).count();
  report.data = &split;
  report.device = device->name();
  report.precision = options.run.precision;
  report.threads = thread_count();

  Trainer trainer(config, split, std::move(device));
  checkpoints.load(trainer);
  StepRunner& runner = trainer.runner();
  const Plan& plan = runner.session().plan(trainer.training_plan());
  report.config = &trainer.config();
  report.parameters = count_parameters(runner.parameters());
  report.setup_seconds = trainer.setup_seconds();
  report.state_bytes = runner.session().state_bytes();
  report.scratch_bytes = runner.session().scratch_bytes();
  for (const Step& step : plan.steps) report.kernels.push_back(step.kernel_name());

  report.story = checkpoints.story();
  TrainRecord record(options.record, trainer, split, config.plan.backend, options.run.precision);
  Printer printer(trainer, split, checkpoints, record, output.json);
  print_plans(options.run, output.json, trainer);
  if (output.json) {
    message(report.story);
  } else {
    print(header_text(report) + '\n' + table_header(trainer.config()));
    for (const EpochResult& epoch : checkpoints.former_epochs()) {
      print(table_row(trainer.config(), epoch));
    }
  }
  try {
    report.result = trainer.train(printer);
  } catch (const std::exception& error) {
    printer.clear();
    report.result = printer.reached();
    report.error = reason_of(error);
    (void)record.finish(report.result, report.error);
    give_out(report, output);
    throw;
  }
  for (const Finding& finding : record.finish(report.result, "")) {
    if (finding.severity == "note") continue;
    report.result.warnings.push_back(fmt::format("{}: {}", finding.name, finding.evidence));
    printer.on_warning(report.result.warnings.back());
  }
  printer.warn_of_board();
  report.joules_per_sample = record.joules_per_sample();
  if (!report.result.interrupted) {
    if (options.confusion) {
      report.confusion.emplace(trainer.config().step.model.classes);
      (void)trainer.evaluate(*report.confusion);
    }
    runner.session().step_state() = {.seed = config.seed,
                                     .valid_rows = trainer.config().step.batch};
    const StepMeasurement measured = measure_steps(runner.session(), trainer.training_plan());
    report.providers =
        provider_shares(step_times(plan, runner.session().device(), measured.seconds));
  }
  give_out(report, output);
  if (!record.trouble().empty()) {
    message(fmt::format("ridgeline: the store could not be written: {}\n", record.trouble()));
    return 1;
  }
  if (checkpoints.failed()) return 1;
  return report.result.interrupted ? 128 + printer.signal() : 0;
}

}  // namespace

void add_train(Parser& program, Action& action) {
  auto options = std::make_shared<TrainOptions>();
  Parser* command = program.add_subcommand("train", "Train a model and evaluate it");
  add_run_options(*command, options->run, "Provider, see 'ridgeline backends', or auto");
  command
      ->add_option("--data", options->data,
                   "A name of 'ridgeline data list', synthetic[:CxHxW[:CLASSES[:COUNT]]], a folder "
                   "with images, IDX or CIFAR files, a .csv file or a pack")
      ->capture_default_str();
  command
      ->add_option("--validation", options->validation,
                   "Hold out samples (a number, or a share below 1) and test on them")
      ->type_name("N");
  command->add_option("--limit", options->limit, "Train on the first N samples only")
      ->type_name("N");
  command
      ->add_option("--normalize", options->normalize,
                   "unit: pixels / 255; mnist: mean 0.1307, deviation 0.3081; imagenet: its means "
                   "and deviations; or MEAN,DEVIATION [photographs: imagenet, else unit]")
      ->type_name("NAME");
  command
      ->add_option("--image", options->image,
                   "The network's input; images are cropped and resized to it [photographs: "
                   "224x224, Tiny-ImageNet: 64x64, others: their own size]")
      ->type_name("HxW");
  command
      ->add_option("--augment", options->augment,
                   "none, flip: mirror at random, crop: random resized crop and flip [photographs: "
                   "crop, else none]")
      ->type_name("KIND");
  command
      ->add_option("--workers", options->workers,
                   "Threads that decode images; 0: one for each usable processor")
      ->capture_default_str();
  command->add_flag("--strict", options->strict,
                    "End at the first broken image instead of replacing it");
  command->add_flag("--flip", options->flip, "Mirror training images at random");
  command->add_option("--epochs", options->epochs, "Passes over the training data")
      ->capture_default_str();
  add_optimizer_options(*command, options->optimizer);
  add_schedule_options(*command, options->schedule);
  add_checkpoint_options(*command, options->checkpoint);
  command
      ->add_option("--last-batch", options->last_batch,
                   "The last, incomplete batch of an epoch: smaller, drop or repeat")
      ->capture_default_str();
  command
      ->add_option("--loss-scale", options->loss_scale,
                   "What the loss scale of fp16 begins with [65536]")
      ->type_name("SCALE");
  command->add_flag("--full-batch", options->full_batch,
                    "The whole training set is one batch, uploaded once");
  command->add_option("--iterations", options->iterations, "Steps in full-batch mode")
      ->capture_default_str();
  command->add_option("--eval-batch", options->eval_batch, "Batch of evaluations [as --batch]");
  command->add_option("--eval-every", options->eval_every,
                      "Epochs between evaluations [1; full batch: 50 iterations]");
  command
      ->add_option("--target-accuracy", options->target_accuracy,
                   "Stop when a test reaches it, and tell when that was; 0.98 or 98%")
      ->type_name("SHARE");
  command->add_flag("--confusion", options->confusion,
                    "Print the confusion matrix, precision and recall at the end");
  add_train_record_options(*command, options->record);
  add_output_options(*command, options->output, "Write one row for each epoch");
  command->footer(
      "Examples:\n"
      "  ridgeline train mnist_cnn --epochs 3\n"
      "  ridgeline train mnist_cnn --data mnist --batch 512 --momentum 0.9 --normalize mnist\n"
      "  ridgeline train mlp --data mnist --validation 1000 --full-batch --iterations 500 --lr "
      "0.1\n"
      "  ridgeline train mnist_cnn --data photos/ --image 64x64 --workers 4\n"
      "  ridgeline train mlp --set hidden=64,32 --optimizer adam --target-accuracy 85% --json\n"
      "  ridgeline train mnist_cnn --tensorboard runs/first --epochs 20\n"
      "  ridgeline train mnist_cnn --schedule cosine --warmup 2 --checkpoint run1\n"
      "  ridgeline train mnist_cnn --schedule cosine --warmup 2 --checkpoint run1 --resume");
  command->callback([options, &action] { action = [options] { return run_train(*options); }; });
}

}  // namespace ridgeline::cli
