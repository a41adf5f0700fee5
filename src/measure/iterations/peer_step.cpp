#include "measure/iterations/peer_step.h"

#include <cmath>

#include "base/error.h"
#include "inspect/complexity.h"
#include "measure/iterations/plan_timer.h"
#include "train/step_runner.h"

namespace ridgeline {
namespace {

// A framework keeps what our plans compute in place, and itself. Only a guess, for the question
// which candidates fit into memory together.
constexpr std::int64_t kFrameworkBytes = std::int64_t{500} << 20;
constexpr std::int64_t kPeerFactor = 2;

// Our own plan of the same work tells what it takes. What a peer moves is its own affair.
struct OwnPlan {
  std::int64_t bytes = 0;
  std::map<std::string, double> numbers;
};
OwnPlan own_plan(const PeerStepConfig& config) {
  StepRunner dry(*config.device, without_search(config.ours, *config.device));
  const Session::PlanId plan = config.peer_work.inference
                                   ? dry.add_evaluation(config.peer_work.step)
                                   : dry.add_training(config.peer_work.step);
  OwnPlan own{dry.bytes(), {}};
  const std::map<std::string, double> numbers =
      complexity_numbers(dry.session().plan(plan), !config.peer_work.inference);
  for (const char* name : {"forward_macs", "forward_flops", "training_flops"}) {
    if (const auto found = numbers.find(name); found != numbers.end()) own.numbers.insert(*found);
  }
  own.numbers["parameters"] = static_cast<double>(count_parameters(dry.parameters()));
  return own;
}

std::string versions_text(const PeerAvailability& about) {
  std::string text;
  for (const auto& [name, version] : about.versions) {
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name, version);
  }
  return text;
}

class PeerStep final : public MeasuredStep {
 public:
  explicit PeerStep(PeerStepConfig config) : config_(std::move(config)) {
    const PeerAvailability& about = config_.starts->availability(config_.name, config_.options);
    if (!about.available) {
      bad_input("{} cannot run here: {}", config_.name.text(), about.reason);
    }
    own_ = own_plan(config_);
    subject_ = {config_.work, config_.executor, kPeerFactor * own_.bytes + kFrameworkBytes};
  }

  [[nodiscard]] const Subject& subject() const override { return subject_; }

  Preparation prepare() override {
    peer_.emplace(config_.starts->take(config_.name, config_.options));
    const PeerFiles files(config_.peer_work.step, *config_.data, config_.seed);
    const PeerSetup setup = peer_->prepare(config_.peer_work, files);
    const std::vector<double> theirs = peer_->losses(kParitySteps);
    const std::vector<double> ours =
        our_losses(config_.peer_work, config_.ours, *config_.device, *config_.data, config_.seed,
                   files.batches(), static_cast<std::int64_t>(theirs.size()));
    const Precision precision = config_.peer_work.step.precision;
    parity_ = check_parity(ours, theirs, precision);
    if (!parity_.agrees && std::isfinite(parity_.worst)) {
      // Something else, or no more than what roundings become in this network?
      const std::vector<double> rounding =
          rounding_of_losses(config_.peer_work, config_.ours, *config_.device, *config_.data,
                             config_.seed, files.batches(), ours);
      parity_ = check_parity(ours, theirs, precision, rounding);
    }
    return {setup.seconds, setup.compile_seconds};
  }

  void run(std::int64_t count, const std::function<bool(const Iteration&)>& see) override {
    const std::vector<Sample> samples = peer_->step(count);
    double ago = 0.0;
    for (const Sample& sample : samples) ago += sample.wall_seconds;
    for (const Sample& sample : samples) {
      ago -= sample.wall_seconds;
      Iteration iteration;
      iteration.ended_ago_seconds = ago;
      iteration.wall_seconds = sample.wall_seconds;
      iteration.device_seconds = sample.device_seconds;
      iteration.upload_seconds = sample.upload_seconds;
      (void)see(iteration);
    }
  }

  [[nodiscard]] std::optional<Iteration> run_queued(std::int64_t count) override {
    const std::optional<Sample> queued = peer_->queued(count);
    if (!queued) return std::nullopt;
    Iteration iteration;
    iteration.wall_seconds = queued->wall_seconds;
    iteration.device_seconds = queued->device_seconds;
    return iteration;
  }

  [[nodiscard]] std::optional<double> processor_seconds() const override {
    return peer_ ? peer_->processor_seconds() : std::nullopt;
  }

  [[nodiscard]] std::optional<SplitIteration> run_split() override {
    if (config_.peer_work.inference) return std::nullopt;
    const std::vector<Sample> samples = peer_->step(1, SampleKind::split);
    if (samples.empty() || !samples[0].forward_seconds) return std::nullopt;
    return SplitIteration{samples[0].wall_seconds, *samples[0].forward_seconds,
                          samples[0].backward_seconds.value_or(0.0),
                          samples[0].optimizer_seconds.value_or(0.0)};
  }

  [[nodiscard]] StepDetails details(bool timed) override {
    (void)timed;
    StepDetails details;
    details.numbers = own_.numbers;
    details.notes["peer_version"] = versions_text(peer_->about());
    details.notes["parity"] = parity_.text;
    details.numbers["parity_max_difference"] = parity_.worst;
    if (parity_.finding) details.findings.push_back(*parity_.finding);
    const PeerMemory memory = peer_->memory();
    const std::string& device = config_.executor.device;
    details.memory.push_back({"cpu", "peer process", "measured", memory.peak_rss_bytes});
    if (memory.peak_bytes) {
      details.memory.push_back({device, "peer tensors", "measured", *memory.peak_bytes});
    }
    if (memory.reserved_bytes) {
      details.memory.push_back({device, "peer allocator", "measured", *memory.reserved_bytes});
    }
    details.numbers["peak_memory_bytes"] =
        static_cast<double>(memory.peak_bytes.value_or(memory.peak_rss_bytes));
    return details;
  }

  void close() override { peer_.reset(); }

 private:
  PeerStepConfig config_;
  Subject subject_;
  OwnPlan own_;
  std::optional<Peer> peer_;
  PeerParity parity_;
};

}  // namespace

std::unique_ptr<MeasuredStep> make_peer_step(PeerStepConfig config) {
  return std::make_unique<PeerStep>(std::move(config));
}

}  // namespace ridgeline
