#include "train/trainer.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <utility>

#include "backends/registry.h"
#include "base/clock.h"
#include "base/error.h"

namespace ridgeline {

Trainer::Trainer(TrainConfig config, const Split& data, std::unique_ptr<Device> device)
    : config_(std::move(config)), data_(data), device_(std::move(device)) {
  const Clock::time_point start = Clock::now();
  if (config_.full_batch) config_.step.batch = data.train.count();
  check_train_config(config_, data);

  // `auto` times kernels with real buffers, so there the check comes first, with a stand-in.
  if (config_.plan.backend == kAuto) check_memory_for_plans();
  runner_ = std::make_unique<StepRunner>(*device_, config_.plan);
  plans_ = add_plans(*runner_, config_.step.batch);
  if (config_.plan.backend != kAuto) check_memory_for_plans();
  runner_->prepare(config_.seed);

  if (config_.full_batch) {
    sample_numbers_.resize(static_cast<std::size_t>(data.train.count()));
    std::iota(sample_numbers_.begin(), sample_numbers_.end(), 0);
  } else {
    LoaderOptions options = loader_options();
    options.batch = config_.step.batch;
    options.shuffle = true;
    options.last_batch = config_.last_batch;
    options.crop = config_.crop;
    loader_ = make_loader(data.train, options, config_.decoder, *device_);
  }
  if (!data.test.empty()) {
    LoaderOptions options = loader_options();
    options.batch = eval_batch(config_.step.batch);
    test_loader_ = make_loader(data.test, options, config_.decoder, *device_);
  }
  setup_seconds_ = seconds_since(start);
}

LoaderOptions Trainer::loader_options() const {
  return {.seed = config_.seed,
          .workers = config_.workers,
          .strict = config_.strict_images,
          .part = config_.rank(),
          .parts = config_.rank_count()};
}

std::vector<std::string> Trainer::broken_images() const {
  std::vector<std::string> reasons;
  for (const Loader* loader : {loader_.get(), test_loader_.get()}) {
    if (loader == nullptr) continue;
    for (BrokenImage& image : loader->broken()) reasons.push_back(std::move(image.reason));
  }
  return reasons;
}

std::int64_t Trainer::eval_batch(std::int64_t batch) const {
  return std::min(config_.eval_batch > 0 ? config_.eval_batch : batch, data_.test.count());
}

// Every rank makes the same number of passes, so that they meet.
Trainer::StepPasses Trainer::add_passes(StepRunner& runner, std::int64_t batch, bool seldom) const {
  const int ranks = config_.rank_count();
  const auto rows_of = [&](int rank) {
    const Range rows = share_of(batch, rank, ranks);
    return rows.end - rows.begin;
  };
  const std::int64_t most = rows_of(0);
  const std::int64_t at_once = config_.micro_batch > 0 ? std::min(config_.micro_batch, most) : most;
  const auto count = static_cast<int>((most + at_once - 1) / at_once);
  StepPasses made{.first_row = share_of(batch, config_.rank(), ranks).begin, .passes = {}};
  std::map<std::array<std::int64_t, 4>, Session::PlanId> known;
  for (int pass = 0; pass < count; ++pass) {
    const Range rows = share_of(rows_of(config_.rank()), pass, count);
    StepSpec spec = config_.step;
    DivideOptions& divide = spec.divide;
    divide.part = {.rows = rows.end - rows.begin, .pass_rows = 0, .batch_rows = batch};
    for (int rank = 0; rank < ranks; ++rank) {
      const Range there = share_of(rows_of(rank), pass, count);
      divide.part.pass_rows += there.end - there.begin;
    }
    divide.ranks = ranks;
    divide.bucket_bytes = config_.bucket_bytes;
    divide.wire = config_.wire;
    divide.synchronise_norms = config_.synchronise_norms;
    divide.several_passes = count > 1;
    divide.first_pass = pass == 0;
    divide.last_pass = pass == count - 1;
    spec.batch = std::max<std::int64_t>(divide.part.rows, 1);
    const auto [plan, is_new] = known.try_emplace(
        {divide.part.rows, divide.part.pass_rows, divide.first_pass, divide.last_pass});
    if (is_new) plan->second = runner.add_training(spec, seldom);
    made.passes.push_back({plan->second, rows.begin, divide.part.rows});
  }
  return made;
}

Trainer::Plans Trainer::add_plans(StepRunner& runner, std::int64_t batch) const {
  Plans plans;
  plans.train = add_passes(runner, batch, false);
  const std::int64_t rest = data_.train.count() % batch;
  if (rest > 0 && config_.last_batch == LastBatch::smaller) {
    plans.train_rest = add_passes(runner, rest, true);
  }
  if (data_.test.empty()) return plans;
  StepSpec spec = config_.step;
  // The test loss is the plain cross-entropy, comparable whatever training smooths.
  spec.label_smoothing = 0.0;
  spec.batch = eval_batch(batch);
  plans.eval = add_evaluation_plans(runner, spec, data_.test.count(), config_.ranks);
  return plans;
}

// What the loader's batches take beside the plans.
std::int64_t Trainer::host_bytes(std::int64_t batch) const {
  if (config_.full_batch) return 0;
  const int slots = LoaderOptions{}.prefetch + 1;
  const std::int64_t tested = data_.test.images != nullptr ? eval_batch(batch) : 0;
  return slots * ((batch + tested) / config_.rank_count()) *
         static_cast<std::int64_t>(data_.train.sample_bytes());
}

void Trainer::check_memory_for_plans() const {
  const auto needed = [&](std::int64_t batch) {
    StepRunner dry(*device_, without_search(config_.plan, *device_));
    (void)add_plans(dry, batch);
    return dry.bytes() + host_bytes(batch);
  };
  const std::int64_t batch = config_.step.batch;
  check_memory(*device_, batch,
               runner_ != nullptr ? runner_->bytes() + host_bytes(batch) : needed(batch), needed);
}

std::vector<std::string> Trainer::kernels() const {
  std::vector<std::string> names = whole_batch_kernels();
  add_kernels(plans_.train_rest, names);
  return names;
}

std::vector<std::string> Trainer::whole_batch_kernels() const {
  std::vector<std::string> names;
  add_kernels(plans_.train, names);
  return names;
}

void Trainer::add_kernels(const StepPasses& step, std::vector<std::string>& names) const {
  for (const Pass& pass : step.passes) {
    for (const Step& one : runner_->session().plan(pass.plan).steps) {
      names.push_back(one.kernel_name());
    }
  }
}

void Trainer::write_training_rows(std::int64_t rows) {
  const auto count = static_cast<std::size_t>(rows);
  Batch batch;
  batch.pixels = std::span(data_.train.pixels).first(count * data_.train.sample_bytes());
  batch.labels = std::span(data_.train.labels).first(count);
  batch.samples = std::span(sample_numbers_).first(count);
  batch.rows = rows;
  runner_->write_batch(batch);
  device_->synchronize();
}

Evaluation Trainer::evaluate(ConfusionMatrix* confusion) {
  ensure(test_loader_ != nullptr, "there is nothing to evaluate on");
  SeeLogits see;
  if (confusion != nullptr) {
    see = [&](std::int64_t, std::int32_t label, std::span<const double> logits) {
      confusion->add(logits, {&label, 1});
    };
  }
  const Evaluation result =
      run_evaluation(*runner_, *test_loader_, *plans_.eval, config_.seed, see, config_.ranks);
  if (confusion != nullptr && config_.ranks != nullptr) {
    config_.ranks->all_reduce(confusion->counts());
  }
  if (config_.full_batch) {
    // The test batches lay where the training data has its place.
    write_training_rows(std::min(plans_.eval->batch, data_.train.count()));
  }
  return result;
}

}  // namespace ridgeline
