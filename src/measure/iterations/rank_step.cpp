#include "measure/iterations/rank_step.h"

#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/json_text.h"
#include "measure/iterations/details_json.h"
#include "peers/line_process.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kEndSeconds = 5.0;

class RankStep final : public MeasuredStep {
 public:
  explicit RankStep(RankStepConfig config)
      : config_(std::move(config)),
        subject_{config_.work, config_.executor, {}},
        job_(std::in_place, config_.command) {
    const Json about = ask({{"do", "about"}});
    if (subject_.executor.transport.empty()) {
      subject_.executor.transport = about.at("transport").get<std::string>();
    }
    subject_.executor.nodes = about.at("nodes").get<int>();
    subject_.needed_bytes = about.at("needed_bytes").get<std::int64_t>();
  }

  [[nodiscard]] const Subject& subject() const override { return subject_; }

  Preparation prepare() override {
    const Json answer = ask({{"do", "prepare"}});
    Preparation preparation;
    preparation.setup_seconds = answer.at("setup_seconds").get<double>();
    return preparation;
  }

  void run(std::int64_t count, const std::function<bool(const Iteration&)>& see) override {
    const auto samples = read_list<Sample>(ask({{"do", "run"}, {"count", count}}).at("samples"));
    double ago = 0.0;
    for (const Sample& sample : samples) ago += sample.wall_seconds;
    for (const Sample& sample : samples) {
      ago -= sample.wall_seconds;
      Iteration iteration;
      iteration.ended_ago_seconds = ago;
      iteration.wall_seconds = sample.wall_seconds;
      iteration.exchange_seconds = sample.exchange_seconds;
      iteration.exposed_seconds = sample.exposed_seconds;
      (void)see(iteration);
    }
  }

  [[nodiscard]] std::optional<SplitIteration> run_split() override {
    const auto samples = read_list<Sample>(ask({{"do", "split"}}).at("samples"));
    if (samples.empty()) return std::nullopt;
    return SplitIteration{samples[0].wall_seconds, samples[0].forward_seconds.value_or(0.0),
                          samples[0].backward_seconds.value_or(0.0),
                          samples[0].optimizer_seconds.value_or(0.0)};
  }

  [[nodiscard]] StepDetails details(bool timed) override {
    return read_details(ask({{"do", "details"}, {"timed", timed}}).at("details"));
  }

  void close() override {
    if (job_) job_->end(kEndSeconds);
    job_.reset();
  }

 private:
  Json ask(const Json& what) {
    Json answer;
    try {
      answer = Json::parse(job_->ask(what.dump(), config_.reply_seconds));
    } catch (const Json::exception& error) {
      fail("{} ranks answered something else: {}", config_.executor.ranks, error.what());
    } catch (const Error& error) {
      fail("the job of {} ranks: {}", config_.executor.ranks, error.what());
    }
    if (!answer.contains("error")) return answer;
    throw Error(static_cast<ErrorKind>(answer.at("kind").get<int>()),
                answer.at("error").get<std::string>());
  }

  RankStepConfig config_;
  Subject subject_;
  std::optional<LineProcess> job_;
};

}  // namespace

std::unique_ptr<MeasuredStep> make_rank_step(RankStepConfig config) {
  return std::make_unique<RankStep>(std::move(config));
}

}  // namespace ridgeline
