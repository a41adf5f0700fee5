#include "lab/train.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include "backends/registry.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/parallel.h"
#include "base/parse.h"
#include "base/reason.h"
#include "base/text.h"
#include "build_info.h"
#include "data/catalog.h"
#include "data/image_folder.h"
#include "data/sample_reader.h"
#include "lab/bucket.h"
#include "lab/describe_run.h"
#include "lab/rank_device.h"
#include "measure/step_times.h"
#include "ranks/agree.h"
#include "ranks/launch.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kFullBatchPace = 50;  // iterations between two rows of the table
constexpr double kUsualValidation = 0.1;     // share held out of data without a test part

double parse_number(const char* option, std::string_view text) {
  const auto number = number_in<double>(text);
  if (!number) bad_input("{} '{}': is not a number", option, text);
  return *number;
}

// 0.98, 98 or 98%.
double parse_accuracy(const std::string& text) {
  const bool percent = text.ends_with('%');
  const double number =
      parse_number("--target-accuracy", std::string_view(text).substr(0, text.size() - percent));
  const double share = percent || number > 1.0 ? number / 100.0 : number;
  if (!(share > 0.0 && share <= 1.0)) {
    bad_input("--target-accuracy {}: must be between 0 and 1, or between 0% and 100%", text);
  }
  return share;
}

FrameSize frame_of(const TrainRequest& request) {
  if (request.image.empty()) return {};
  return parse_frame(request.image);
}

Split load_data(const TrainRequest& request, CallListener& listener) {
  const auto seed = static_cast<std::uint64_t>(request.run.seed);
  if (request.given && !request.image.empty()) {
    bad_input("--image {}: samples in memory stay as they are", request.image);
  }
  Split split = request.given ? *request.given
                              : load_dataset(request.data, {.classes = static_cast<std::int32_t>(
                                                                request.run.classes.value_or(10)),
                                                            .seed = seed,
                                                            .image = frame_of(request)});
  if (!split.skipped.empty()) listener.note("note: " + skipped_text(split.skipped));
  if (!request.validation.empty()) {
    const double amount = parse_number("--validation", request.validation);
    if (amount < 1.0) {
      split = hold_out_fraction(split.train, amount, seed);
    } else if (amount == std::floor(amount) && amount < 1e15) {
      split = hold_out(split.train, static_cast<std::int64_t>(amount), seed);
    } else {
      bad_input("--validation {}: must be a whole number of samples or a share below 1",
                request.validation);
    }
  } else if (split.test.empty()) {
    const double share = kUsualValidation * static_cast<double>(split.train.count());
    split = hold_out(split.train, std::max<std::int64_t>(1, std::llround(share)), seed);
    listener.note(
        fmt::format("note: the data has no test part; {} samples are held out (--validation)",
                    count_text(split.test.count())));
  }
  check_readable(split.test);
  if (request.limit) {
    const std::string note = limit_note(split.train, *request.limit);
    if (!note.empty()) listener.note(note);
    split.train = limit(std::move(split.train), *request.limit);
  }
  if (request.full_batch) split.train = in_memory(split.train, thread_count());
  return split;
}

// What depends on the kind of data unless it was said.
void fit_input(TrainConfig& config, const TrainRequest& request, const Dataset& data) {
  static constexpr std::array<std::string_view, 3> kNames = {"none", "flip", "crop"};
  const std::string usual = data.photos && !request.full_batch ? "crop" : "none";
  const std::string augment = request.augment.empty() ? usual : request.augment;
  const std::size_t choice = choice_of("--augment", augment, kNames);
  config.crop = choice == 2;
  config.step.flip = request.flip || choice != 0;
  config.strict_images = request.strict;
  config.workers = checked_workers(request.workers);
  set_normalisation(config.step,
                    request.normalize.empty() ? usual_normalisation(data) : request.normalize);
}

void fit_batch(TrainConfig& config, const Dataset& data, CallListener& listener) {
  if (config.full_batch || config.step.batch <= data.count()) return;
  listener.note(
      fmt::format("note: --batch {}: there are only {} training samples; the batch has all of them",
                  config.step.batch, data.count()));
  config.step.batch = data.count();
}

std::int64_t steps_of_epoch(const TrainConfig& config, const Dataset& data) {
  if (config.full_batch) return 1;
  return (data.count() + config.step.batch - 1) / config.step.batch;
}

LastBatch last_batch_of(const std::string& name) {
  static constexpr std::array<std::string_view, 3> kNames = {"smaller", "drop", "repeat"};
  return static_cast<LastBatch>(choice_of("--last-batch", name, kNames));
}

void check_positive(const char* option, const std::optional<std::int64_t>& value) {
  if (value && *value < 1) bad_input("{} {}: must be at least 1", option, *value);
}

void check(const RankOptions& options) {
  if (!(options.timeout >= 1.0) || !std::isfinite(options.timeout)) {
    bad_input("--rank-timeout {}: must be at least 1 second", options.timeout);
  }
  if (options.bucket_mib && (!(*options.bucket_mib > 0.0) || !(*options.bucket_mib <= 1e6))) {
    bad_input("--bucket {}: must be above 0 MiB", *options.bucket_mib);
  }
  (void)wire_type(options.reduce);
}

// What differs from rank to rank for good, and what ranks do otherwise than one process.
TrainRequest of_rank(TrainRequest request, Ranks& ranks) {
  request.run.device = device_of_rank(request.run.device, ranks);
  if (request.run.backend.empty()) {
    request.run.backend = own_backend(device_kind(request.run.device));
  }
  if (request.run.threads == 0) request.run.threads = threads_of_rank(ranks);
  if (ranks.first()) return request;
  request.checkpoint.write = false;
  request.record.store.none = true;
  request.record.tensorboard.clear();
  request.record.telemetry_hz = 0.0;
  request.run.print_plan = request.run.explain = false;
  return request;
}

// All that can be checked without the data.
TrainConfig config_of(const TrainRequest& request) {
  apply(request.run);
  TrainConfig config;
  config.step.model = model_config(request.run);
  config.step.batch = request.run.batch;
  config.step.freeze = request.run.freeze;
  config.step.recompute = request.run.recompute;
  config.step.optimizer = optimizer_attributes(request.optimizer);
  config.step.label_smoothing = request.optimizer.label_smoothing;
  config.plan = plan_request(request.run, request.run.backend);
  config.full_batch = request.full_batch;
  config.epochs = request.full_batch ? request.iterations : request.epochs;
  config.learning_rate = learning_rate(request.optimizer);
  config.schedule = schedule_of(request.schedule);
  config.seed = static_cast<std::uint64_t>(request.run.seed);
  config.last_batch = last_batch_of(request.last_batch);
  check_positive("--eval-batch", request.eval_batch);
  check_positive("--eval-every", request.eval_every);
  check_positive("--limit", request.limit);
  config.eval_batch = request.eval_batch.value_or(0);
  config.eval_every = request.eval_every.value_or(request.full_batch ? kFullBatchPace : 1);
  check_positive("--micro-batch", request.micro_batch);
  config.micro_batch = request.micro_batch.value_or(0);
  if (request.clip_norm) {
    if (!(*request.clip_norm > 0.0) || !std::isfinite(*request.clip_norm)) {
      bad_input("--clip-norm {}: must be above 0", *request.clip_norm);
    }
    config.step.clip_norm = *request.clip_norm;
  }
  if (request.loss_scale) {
    if (request.run.precision != "fp16") bad_input("--loss-scale belongs to --precision fp16");
    if (!(*request.loss_scale > 0.0) || !std::isfinite(*request.loss_scale)) {
      bad_input("--loss-scale {}: must be above 0", *request.loss_scale);
    }
    config.first_loss_scale = *request.loss_scale;
  }
  if (!request.target_accuracy.empty()) {
    config.target_accuracy = parse_accuracy(request.target_accuracy);
  }
  return config;
}

// Hands on what happens, writes it down, and keeps what was reached in case the training fails.
class Observer final : public TrainObserver {
 public:
  Observer(Trainer& trainer, const Split& data, TrainCheckpoints& checkpoints, TrainRecord& record,
           TrainListener& listener)
      : trainer_(trainer),
        data_(data),
        checkpoints_(checkpoints),
        record_(record),
        listener_(listener) {
    reached_.epochs = checkpoints.former_epochs();
  }

  void on_step(const StepProgress& step) override {
    reached_.steps = step.done;
    record_.add(step);
    listener_.progress(step.done, step.total, trainer_.config().full_batch ? "iteration" : "step");
  }
  void on_epoch(const EpochResult& epoch) override {
    reached_.epochs.push_back(epoch);
    record_.add(epoch);
    warn_of_board();
    if (epoch.test_accuracy) {
      reached_.final_test_accuracy = epoch.test_accuracy;
      reached_.final_test_loss = epoch.test_loss;
    }
    listener_.epoch(epoch);
  }
  void on_warning(const std::string& text) override {
    reached_.warnings.push_back(text);
    listener_.warning(text);
  }
  void on_alarm(const TrainAlarm& alarm) override {
    record_.add(alarm);
    TrainObserver::on_alarm(alarm);
  }
  void on_checkpoint(const TrainProgress& progress) override {
    if (trainer_.config().rank() != 0) return;
    const std::string trouble = checkpoints_.save(trainer_, data_, progress);
    if (!trouble.empty()) on_warning(trouble);
  }
  [[nodiscard]] bool stop() override { return !listener_.go_on(); }

  [[nodiscard]] const TrainResult& reached() const { return reached_; }
  // Once.
  void warn_of_board() {
    const std::string trouble = record_.board_trouble();
    if (trouble.empty() || board_warned_) return;
    board_warned_ = true;
    on_warning("no more TensorBoard events are written: " + trouble);
  }

 private:
  Trainer& trainer_;
  const Split& data_;
  TrainCheckpoints& checkpoints_;
  TrainRecord& record_;
  TrainListener& listener_;
  TrainResult reached_;
  bool board_warned_ = false;
};

void tell_plans(const RunOptions& options, Trainer& trainer, CallListener& listener) {
  if (!options.print_plan && !options.explain) return;
  const Session& session = trainer.runner().session();
  std::string text = "plan of a training step\n" +
                     session.plan(trainer.training_plan()).text(options.explain) + '\n';
  if (trainer.evaluation_plan()) {
    text += "plan of an evaluation step\n" +
            session.plan(*trainer.evaluation_plan()).text(options.explain) + '\n';
  }
  listener.plan(text);
}

// What is known before the first step.
void describe(Trainer& trainer, TrainCheckpoints& checkpoints, TrainReport& report) {
  StepRunner& runner = trainer.runner();
  report.config = trainer.config();
  report.identity = describe_training(report.config, *report.data, runner.session().device().name(),
                                      checkpoints.weights(), checkpoints.epochs_done());
  checkpoints.settle_weights(report.identity.work);
  report.parameters = count_parameters(runner.parameters());
  report.setup_seconds = trainer.setup_seconds();
  report.state_bytes = runner.session().state_bytes();
  report.scratch_bytes = runner.session().scratch_bytes();
  for (const Step& step : runner.session().plan(trainer.training_plan()).steps) {
    report.kernels.push_back(step.kernel_name());
  }
  report.story = checkpoints.story();
}

// What only a training that came to its end has.
void look_at_the_end(const TrainRequest& request, Trainer& trainer, TrainReport& report) {
  if (request.confusion) {
    ConfusionMatrix confusion(report.config.step.model.classes);
    (void)trainer.evaluate(confusion);
    report.confusion = std::move(confusion);
  }
  // Steps that are timed one by one would wait for steps that other ranks do not run.
  if (report.config.ranks != nullptr) return;
  Session& session = trainer.runner().session();
  session.step_state() = {.seed = report.config.seed, .valid_rows = report.config.step.batch};
  const StepMeasurement measured = measure_steps(session, trainer.training_plan());
  report.providers = provider_shares(
      step_times(session.plan(trainer.training_plan()), session.device(), measured.seconds));
}

// One training, from its options to a trainer that is about to begin.
struct Beginning {
  TrainReport report;
  std::unique_ptr<TrainCheckpoints> checkpoints;
  std::unique_ptr<Trainer> trainer;
};

// A training that is resumed goes on with what it had.
std::int64_t bucket_of(const RankOptions& options, std::int64_t usual,
                       const TrainCheckpoints& checkpoints) {
  if (!options.bucket_mib) return checkpoints.bucket_bytes().value_or(usual);
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(*options.bucket_mib * (1 << 20)));
}

Beginning begin(const TrainRequest& request, Ranks* ranks, std::int64_t bucket,
                TrainListener& listener) {
  Beginning made;
  TrainConfig config = config_of(request);
  check(request.record);
  check(request.ranks);
  if (ranks != nullptr) {
    if (request.ranks.count && *request.ranks.count != ranks->size()) {
      bad_input("--ranks {}: {} processes were started", *request.ranks.count, ranks->size());
    }
    if (config.plan.backend == kAuto) {
      bad_input("--backend auto: ranks would choose different kernels; name a backend");
    }
    config.plan.measure = false;  // all ranks take the same kernels
    config.ranks = ranks;
    config.synchronise_norms = request.ranks.synchronise_norms;
    config.wire = wire_type(request.ranks.reduce);
  }
  made.checkpoints = std::make_unique<TrainCheckpoints>(request.checkpoint);
  config.bucket_bytes = bucket_of(request.ranks, bucket, *made.checkpoints);
  std::unique_ptr<Device> device =
      ranks != nullptr ? make_rank_device(request.run.device) : make_device(request.run.device);
  config.step.precision = precision_of(request.run, *device);

  const Clock::time_point start = Clock::now();
  TrainReport& report = made.report;
  report.data = std::make_shared<const Split>(load_data(request, listener));
  const Split& split = *report.data;
  fit_to_data(config.step.model, split.train);
  fit_input(config, request, split.train);
  config.decoder = decoder_of(made.checkpoints->decoder(request.decoder), split.train, *device);
  fit_batch(config, split.train, listener);
  made.checkpoints->configure(config, split);
  report.load_seconds = seconds_since(start);

  tell_of_search(config.plan, listener);
  config.plan.search.runs = config.epochs * steps_of_epoch(config, split.train);
  made.trainer = std::make_unique<Trainer>(config, split, std::move(device));
  made.checkpoints->load(*made.trainer);
  describe(*made.trainer, *made.checkpoints, report);
  return made;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

// What must be the same on all ranks, a line each.
std::vector<std::string> common_ground(Trainer& trainer, const TrainReport& report) {
  std::vector<std::string> lines = {
      fmt::format("build: {} {}", build_info::revision, build_info::flags)};
  for (const auto& [name, value] : settings_of(trainer.config(), *report.data)) {
    lines.push_back(fmt::format("{}: {}", name, value));
  }
  lines.push_back(fmt::format("gradients travel as: {}", name_of(trainer.config().wire)));
  lines.push_back(fmt::format("bytes that travel together: {}", trainer.config().bucket_bytes));
  lines.push_back(fmt::format("steps done: {}", trainer.beginning().result.steps));
  lines.push_back(
      fmt::format("kernels: {:x}", hash_of(joined(trainer.whole_batch_kernels(), ";"))));
  return lines;
}

// Throws on every rank what rank 0 is to tell, where they are not about to do the same.
void compare(Ranks& ranks, const Beginning& here) {
  const std::vector<std::string> own_lines = common_ground(*here.trainer, here.report);
  const std::vector<std::string> all = ranks.gather(joined(own_lines, "\n"));
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    ranks.end_together();
    const std::vector<std::string> first = lines_of(all[0]), other = lines_of(all[rank]);
    std::size_t line = 0;
    while (line + 1 < std::min(first.size(), other.size()) && first[line] == other[line]) ++line;
    bad_input("rank {} differs from rank 0: {}, and on rank 0 {}", rank, other[line], first[line]);
  }
}

// Ranks of another machine have processors of their own; so have those that mpirun has tied to
// some.
void tell_of_ranks(const TrainRequest& request, const Ranks& ranks, TrainListener& listener) {
  if (!ranks.first()) return;
  if (const std::string note = rank_device_note(request.run.device); !note.empty()) {
    listener.note(note);
  }
  if (!request.ranks.count) return;
  const std::string note = crowding_note(ranks.local_size());
  if (!note.empty()) listener.note(note);
}

Beginning begin_together(const TrainRequest& request, Ranks& ranks, std::int64_t bucket,
                         TrainListener& listener) {
  Beginning made;
  together(ranks, [&] { made = begin(request, &ranks, bucket, listener); });
  compare(ranks, made);
  tell_of_ranks(request, ranks, listener);
  ranks.set_patience(request.ranks.timeout);
  return made;
}

}  // namespace

TrainReport run_train(const TrainRequest& asked, TrainListener& listener) {
  Ranks* const ranks = started_ranks();
  const TrainRequest request = ranks != nullptr ? of_rank(asked, *ranks) : asked;
  const std::int64_t bucket =
      ranks != nullptr ? usual_bucket(request.record.store, *ranks, device_kind(request.run.device))
                       : kBucketBytes;
  Beginning made = ranks != nullptr ? begin_together(request, *ranks, bucket, listener)
                                    : begin(request, nullptr, bucket, listener);
  TrainReport& report = made.report;
  TrainCheckpoints& checkpoints = *made.checkpoints;
  Trainer& trainer = *made.trainer;
  const Split& split = *report.data;

  // The first question: from here on the listener hears of interruptions, and the record is closed.
  (void)listener.go_on();
  TrainRecord record(request.record, trainer, split, report.identity);
  Observer observer(trainer, split, checkpoints, record, listener);
  tell_plans(request.run, trainer, listener);
  listener.begun(report, checkpoints.former_epochs());
  try {
    report.result = trainer.train(observer);
    report.recorded = trainer.runner().session().is_recorded(trainer.training_plan());
  } catch (const std::exception& error) {
    report.result = observer.reached();
    report.error = reason_of(error);
    if (const auto* known = dynamic_cast<const Error*>(&error)) report.error_kind = known->kind();
    (void)record.finish(report.result, report.error);
    return std::move(report);
  }
  for (const Finding& finding : record.finish(report.result, "")) {
    if (finding.severity == "note") continue;
    report.result.warnings.push_back(fmt::format("{}: {}", finding.name, finding.evidence));
    observer.on_warning(report.result.warnings.back());
  }
  observer.warn_of_board();
  report.joules_per_sample = record.joules_per_sample();
  report.store_trouble = record.trouble();
  report.checkpoint_failed = checkpoints.failed();
  if (ranks == nullptr) {
    trainer.runner().session().stop_when([&] { return !listener.go_on(); });
  }
  try {
    if (!report.result.interrupted) look_at_the_end(request, trainer, report);
  } catch (const Interrupted&) {
    report.result.interrupted = true;
  }
  return std::move(report);
}

}  // namespace ridgeline
