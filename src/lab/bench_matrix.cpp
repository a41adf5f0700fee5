#include "lab/bench_matrix.h"

#include <algorithm>
#include <map>
#include <thread>

#include "backends/registry.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "data/catalog.h"
#include "data/sample_reader.h"
#include "inspect/network_description.h"
#include "lab/bucket.h"
#include "lab/describe_run.h"
#include "lab/rank_device.h"
#include "lab/step_data.h"
#include "measure/iterations/engine_step.h"
#include "measure/iterations/inference_step.h"
#include "measure/iterations/peer_step.h"
#include "measure/iterations/rank_step.h"
#include "ranks/launch.h"

namespace ridgeline {
namespace {

using DataPointer = std::shared_ptr<const Dataset>;

// Makes measured steps of combinations. Devices and data are shared among them.
class Builder {
 public:
  // `ranks`: this process is one of them; null: it measures, and starts them.
  Builder(const BenchWork& work, CallListener& listener, Ranks* ranks = nullptr)
      : work_(work), listener_(listener), ranks_(ranks) {}

  std::unique_ptr<MeasuredStep> build(const Combination& combination) {
    const RunOptions run = run_of(combination);
    const bool peer = is_peer(combination.backend);
    check_ranks(combination);
    if (peer && work_.loader) {
      bad_input(
          "peers do not support --loader, because each batch would have to travel from process to "
          "process; leave out --loader or the peer");
    }
    // A device that only the peer knows: what we compute for comparison, we compute on the cpu.
    const bool elsewhere = peer && combination.device == "mps";
    const std::string name = elsewhere ? "cpu" : combination.device;
    const std::shared_ptr<Device> device =
        device_of(ranks_ != nullptr ? device_of_rank(name, *ranks_) : name);
    OptimizerOptions optimizer = work_.optimizer;
    if (!combination.optimizer.empty()) optimizer.name = combination.optimizer;

    RunSpec spec{.kind = work_.inference ? "inference" : "training",
                 .step = step_of(run, optimizer),
                 .plan = {},
                 .device = combination.device,
                 .threads = thread_count(),
                 .learning_rate = learning_rate(optimizer),
                 .full_batch = combination.batch == "full",
                 .loader = work_.loader,
                 .workers = work_.workers,
                 .ranks = combination.rank_count(),
                 .connected = combination.connected(),
                 .bucket_bytes = bucket_bytes(combination),
                 .wire = wire_type(work_.ranks.reduce),
                 .synchronise_norms = work_.ranks.synchronise_norms};
    spec.step.precision =
        peer ? static_cast<Precision>(choice_of("--precision", run.precision, kPrecisionNames))
             : precision_of(run, *device);
    const Source source = fit(spec.step, combination);
    set_normalisation(spec.step, work_.data.normalize);
    if (spec.ranks > 1 && ranks_ == nullptr) return started(spec, combination);
    spec.plan =
        plan_request(run, peer ? std::string(own_backend(device->kind())) : combination.backend);
    tell_of_search(spec.plan, listener_);
    const std::int64_t batch = spec.step.batch;
    if (ranks_ != nullptr) {
      spec.plan.measure = false;  // all ranks take the same kernels
      divide(spec, combination.connected());
    }
    check_memory_of(spec.step, spec.plan, *device);
    spec.crop = spec.step.flip = work_.loader && source.photos;
    const DataPointer data = data_of(source, batch, spec.step);
    spec.data = work_.data.data == "synthetic" ? "synthetic" : data->name;
    spec.data_samples = data->count();
    if (work_.loader) spec.decoder = decoder_of(work_.decoder, *data, *device);
    if (peer) {
      spec.peer = parse_peer(combination.backend);
    } else {
      show_plan(spec.step, spec.plan, *device);
    }
    network_ = describe_network(spec.step.model);
    return measured(spec, device, data);
  }

  // Of the last step that was built.
  [[nodiscard]] const NetworkRecord& network() const { return network_; }

  [[nodiscard]] std::vector<std::shared_ptr<Device>> devices() const {
    std::vector<std::shared_ptr<Device>> all;
    for (const auto& [name, device] : devices_) all.push_back(device);
    return all;
  }

 private:
  [[nodiscard]] StepSpec step_of(const RunOptions& run, const OptimizerOptions& optimizer) const {
    StepSpec step;
    step.model = model_config(run);
    step.freeze = run.freeze;
    step.recompute = run.recompute;
    step.label_smoothing = optimizer.label_smoothing;
    step.optimizer = optimizer_attributes(optimizer);
    return step;
  }

  std::unique_ptr<MeasuredStep> measured(const RunSpec& spec, std::shared_ptr<Device> device,
                                         DataPointer data) {
    Identity identity = describe_run(spec);
    if (ranks_ != nullptr && spec.connected) {
      identity.work.batch = spec.step.divide.part.batch_rows;  // of all ranks together
      identity.executor.nodes = ranks_->nodes();
      identity.executor.transport = ranks_->transport();
    }
    const auto seed = static_cast<std::uint64_t>(work_.run.seed);
    if (spec.peer) {
      return make_peer_step(
          {.work = identity.work,
           .executor = identity.executor,
           .name = *spec.peer,
           .options = {.threads = thread_count(),
                       .start_seconds = std::min(PeerOptions{}.start_seconds, work_.peer_seconds),
                       .reply_seconds = work_.peer_seconds},
           .starts = peers_,
           .peer_work = {.step = spec.step,
                         .learning_rate = spec.learning_rate,
                         .inference = work_.inference,
                         .device = spec.device},
           .ours = spec.plan,
           .device = std::move(device),
           .data = std::move(data),
           .seed = seed});
    }
    if (work_.inference) {
      return make_inference_step({.work = identity.work,
                                  .executor = identity.executor,
                                  .step = spec.step,
                                  .request = spec.plan,
                                  .device = std::move(device),
                                  .data = std::move(data),
                                  .seed = seed});
    }
    return make_engine_step(
        {.work = identity.work,
         .executor = identity.executor,
         .step = spec.step,
         .request = spec.plan,
         .device = std::move(device),
         .data = std::move(data),
         .learning_rate = spec.learning_rate,
         .seed = seed,
         .loader = work_.loader,
         .workers = work_.workers,
         .decoder = spec.decoder,
         .crop = spec.crop,
         .ranks = ranks_,
         .first_row = ranks_ != nullptr ? ranks_->rank() * spec.step.batch : 0});
  }

  // ---- Ranks.

  [[nodiscard]] std::int64_t bucket_bytes(const Combination& combination) const {
    if (work_.ranks.bucket_mib) return std::llround(*work_.ranks.bucket_mib * (1 << 20));
    const std::string kind = device_kind(combination.device);
    const auto usual = work_.ranks.usual_buckets.find({combination.rank_count(), kind});
    return usual != work_.ranks.usual_buckets.end() ? usual->second : unmeasured_bucket(kind);
  }

  static void check_ranks(const Combination& combination) {
    if (combination.rank_count() == 1) return;
    if (is_peer(combination.backend)) bad_input("a peer computes in one process");
    if (combination.backend == "auto") {
      bad_input("--backend auto: ranks would choose different kernels; name a backend");
    }
    if (combination.batch == "full") bad_input("--batch full is one batch of one process");
  }

  // The ranks know the rest.
  std::unique_ptr<MeasuredStep> started(RunSpec& spec, const Combination& combination) {
    spec.data = work_.data.data;
    spec.plan = plan_request(run_of(combination), combination.backend);
    network_ = describe_network(spec.step.model);
    const Identity identity = describe_run(spec);
    if (!work_.ranks.command) bad_input("--ranks: ranks are started by the program alone");
    std::vector<std::string> command = rank_launcher(spec.ranks);
    const std::vector<std::string> own = work_.ranks.command(
        combination.number, thread_count(), static_cast<double>(spec.bucket_bytes) / (1 << 20));
    command.insert(command.end(), own.begin(), own.end());
    return make_rank_step({.work = identity.work,
                           .executor = identity.executor,
                           .command = std::move(command),
                           .reply_seconds = work_.peer_seconds});
  }

  // The rows of this rank.
  void divide(RunSpec& spec, bool connected) const {
    StepSpec& step = spec.step;
    const std::int64_t rows = step.batch / ranks_->size();
    if (connected) {
      step.divide = {.part = {.rows = rows, .pass_rows = step.batch, .batch_rows = step.batch},
                     .ranks = ranks_->size(),
                     .bucket_bytes = spec.bucket_bytes,
                     .wire = spec.wire,
                     .synchronise_norms = spec.synchronise_norms};
    }
    step.batch = rows;
  }

  [[nodiscard]] RunOptions run_of(const Combination& combination) const {
    RunOptions run = work_.run;
    run.model = combination.model;
    run.backend = combination.backend;
    run.device = combination.device;
    run.precision = combination.precision;
    return run;
  }

  // The data of a step before it is read whole: files are looked at, synthetic images not made yet.
  struct Source {
    std::string key;
    std::int64_t samples = 0;  // of the data set
    bool photos = false;
    DataPointer files;  // null: synthetic
  };

  std::shared_ptr<Device> device_of(const std::string& name) {
    std::shared_ptr<Device>& device = devices_[name];
    if (device == nullptr) {
      try {
        device = ranks_ != nullptr ? make_rank_device(name) : make_device(name);
      } catch (...) {
        devices_.erase(name);
        throw;
      }
    }
    return device;
  }

  DataPointer files_of(const std::string& image) {
    DataPointer& files = files_[image];
    if (files == nullptr) {
      LoadOptions options{.classes = static_cast<std::int32_t>(work_.run.classes.value_or(10)),
                          .seed = static_cast<std::uint64_t>(work_.run.seed)};
      if (!image.empty()) options.image = parse_frame(image);
      files = std::make_shared<Dataset>(load_dataset(work_.data.data, options).train);
    }
    return files;
  }

  // Images, classes and batch of the step; where its data comes from.
  Source fit(StepSpec& step, const Combination& combination) {
    Source source;
    const bool full = combination.batch == "full";
    const std::int64_t wanted = combination.samples.empty() ? 0 : std::stoll(combination.samples);
    if (work_.data.data == "synthetic") {
      set_image(step.model, combination.image);
      if (full && wanted == 0) bad_input("--batch full: synthetic data needs --samples");
      step.batch = full ? wanted : std::stoll(combination.batch);
      source.samples = wanted > 0 ? wanted : usual_samples(step.batch);
    } else {
      source.files = files_of(combination.image);
      fit_to_data(step.model, *source.files);
      source.photos = source.files->photos;
      source.samples = wanted > 0 ? wanted : source.files->count();
      if (source.samples > source.files->count()) {
        bad_input("--samples {}: the data has {}", source.samples, source.files->count());
      }
      step.batch = full ? source.samples : std::stoll(combination.batch);
    }
    if (work_.ranks.weak) {
      step.batch *= combination.rank_count();
      if (source.files == nullptr) source.samples = std::max(source.samples, step.batch);
    }
    if (step.batch % combination.rank_count() != 0) {
      bad_input("batch {} cannot be divided evenly among {} ranks", step.batch,
                combination.rank_count());
    }
    if (step.batch > source.samples) {
      bad_input("batch {} is larger than the data; it must be between 1 and {}", step.batch,
                source.samples);
    }
    source.key =
        fmt::format("{} {} {}x{}x{} {} {}", work_.data.data, combination.image, step.model.channels,
                    step.model.height, step.model.width, step.model.classes, source.samples);
    return source;
  }

  // Of synthetic data, where no size is asked for: what a loader needs for some batches, or one
  // batch, which stays on the device.
  [[nodiscard]] std::int64_t usual_samples(std::int64_t batch) const {
    constexpr std::int64_t kBatches = 8;
    return work_.loader ? kBatches * batch : batch;
  }

  void check_memory_of(const StepSpec& step, const PlanRequest& request, Device& device) const {
    if (work_.inference) {
      check_inference_memory(device, step, request);
    } else {
      check_training_memory(device, step, {&request, 1});
    }
  }

  DataPointer data_of(const Source& source, std::int64_t batch, const StepSpec& step) {
    const std::int64_t needed = work_.loader ? source.samples : batch;
    DataPointer& data = data_[fmt::format("{} {}", source.key, needed)];
    if (data != nullptr) return data;
    if (source.files == nullptr) {
      data = std::make_shared<Dataset>(synthetic_for(step.model, needed, work_.run.seed));
      return data;
    }
    Dataset part = limit(*source.files, needed);
    // Without a loader the batch is written once, from memory.
    if (!work_.loader && part.images != nullptr) part = in_memory(part, thread_count());
    data = std::make_shared<Dataset>(std::move(part));
    return data;
  }

  void show_plan(const StepSpec& step, const PlanRequest& request, Device& device) const {
    if (work_.inference) {
      show_inference_plan(step, work_.run, request, listener_, device);
    } else {
      show_plans(step, work_.run, {&request, 1}, listener_, device);
    }
  }

  const BenchWork& work_;
  CallListener& listener_;
  Ranks* ranks_;
  NetworkRecord network_;
  std::map<std::string, std::shared_ptr<Device>> devices_;
  std::map<std::string, DataPointer> files_, data_;
  std::shared_ptr<PeerStarts> peers_ = std::make_shared<PeerStarts>();
};

}  // namespace

std::vector<Subject> BenchMatrix::subjects() const {
  std::vector<Subject> all;
  for (const auto& step : steps) all.push_back(step->subject());
  return all;
}

std::int64_t BenchMatrix::available_memory(const std::string& name) const {
  for (const auto& device : devices) {
    if (device->name() == name) {
      return static_cast<std::int64_t>(std::min<std::size_t>(
          device->available_memory(), std::numeric_limits<std::int64_t>::max() / 2));
    }
  }
  return std::numeric_limits<std::int64_t>::max() / 2;
}

BenchMatrix make_matrix(const std::vector<Combination>& combinations, const BenchWork& work,
                        CallListener& listener, Ranks* ranks) {
  Builder builder(work, listener, ranks);
  BenchMatrix matrix;
  for (const Combination& combination : combinations) {
    try {
      matrix.steps.push_back(builder.build(combination));
      matrix.networks.push_back(builder.network());
    } catch (const Error& error) {
      if (combinations.size() == 1) throw;
      matrix.left_out.push_back(
          {combination, error.what(), error.kind() == ErrorKind::lacks_memory});
    }
  }
  if (matrix.steps.empty()) {
    std::string reasons;
    for (const LeftOut& each : matrix.left_out) {
      reasons += fmt::format("\n  {}: {}", each.combination.text(), each.reason);
    }
    const bool too_large = std::all_of(matrix.left_out.begin(), matrix.left_out.end(),
                                       [](const LeftOut& each) { return each.lacks_memory; });
    throw Error(too_large ? ErrorKind::lacks_memory : ErrorKind::bad_input,
                fmt::format("none of the {} configurations can be measured:{}", combinations.size(),
                            reasons));
  }
  matrix.devices = builder.devices();
  return matrix;
}

std::unique_ptr<MeasuredStep> make_step_of_rank(const Combination& combination,
                                                const BenchWork& work, Ranks& ranks,
                                                CallListener& listener) {
  return Builder(work, listener, &ranks).build(combination);
}

}  // namespace ridgeline
