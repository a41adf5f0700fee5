#include "measure/iterations/measurement.h"

#include <algorithm>
#include <cmath>

#include "analysis/stats/summary.h"
#include "base/error.h"
#include "base/processor_time.h"
#include "base/reason.h"
#include "measure/iterations/blocks.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kSplits = 5;  // iterations of the split pass, at most
constexpr double kSplitSeconds = 2.0;

// One candidate while its group is measured.
struct Candidate {
  std::size_t index = 0;
  MeasuredStep* step = nullptr;
  Warmup warmup;
  Stopping stopping;
  std::int64_t iteration = 0;               // the next one
  std::optional<double> iteration_seconds;  // when it was warm
  std::int64_t turn = kFixedTurn;
  bool cold_start = true;            // a turn begins with an iteration that does not count
  double turn_seconds = 0.0;         // of all its turns
  std::int64_t queued = 0;           // iterations
  std::vector<double> measured;      // wall time
  std::vector<std::int64_t> blocks;  // of each
  std::size_t set = 0;               // candidates of the same work share blocks
  bool alive = true;
};

class Group {
 public:
  Group(const MeasureOptions& options, const MeasureControl& control, MeasureSink& sink,
        const MeasureProgress& progress)
      : options_(options), control_(control), sink_(sink), progress_(progress) {}

  // False when interrupted.
  [[nodiscard]] bool run(const StepList& steps, const std::vector<std::size_t>& members) {
    start_ = control_.now();
    sink_.group_begun(start_);
    prepare(steps, members);
    for (Candidate& candidate : candidates_) {
      guarded(candidate, [&] {
        settle();
        warm_up(candidate);
      });
    }
    settle_turns();
    run_blocks();
    for (Candidate& candidate : candidates_) {
      if (candidate.alive) guarded(candidate, [&] { finish(candidate); });
    }
    return go_on_;
  }

 private:
  // Work on one candidate: what goes wrong there ends that candidate alone.
  template <typename Body>
  void guarded(Candidate& candidate, Body body) {
    if (!candidate.alive) return;
    try {
      body();
    } catch (const std::exception& error) {
      end(candidate, {.status = RunStatus::failed,
                      .error = reason_of(error),
                      .reason = candidate.stopping.reason(),
                      .warmup = candidate.warmup.text(),
                      .details = {}});
    }
  }

  void end(Candidate& candidate, const Ending& ending) {
    candidate.alive = false;
    sink_.ended(candidate.index, ending);
    candidate.step->close();
  }

  void prepare(const StepList& steps, const std::vector<std::size_t>& members) {
    std::vector<Work> works;
    for (const std::size_t member : members) {
      if (!go_on_) return;
      const Work& work = steps[member]->subject().work;
      const auto known = std::find(works.begin(), works.end(), work);
      candidates_.push_back({.index = member,
                             .step = steps[member].get(),
                             .warmup = Warmup(options_.warmup),
                             .stopping = Stopping(options_.stopping),
                             .iteration_seconds = {},
                             .measured = {},
                             .blocks = {},
                             .set = static_cast<std::size_t>(known - works.begin())});
      if (known == works.end()) works.push_back(work);
      sink_.begun(member);
      guarded(candidates_.back(),
              [&] { sink_.prepared(member, candidates_.back().step->prepare()); });
    }
  }

  Sample next_sample(Candidate& candidate, std::int64_t block, SampleKind kind, double ago) const {
    Sample sample;
    sample.process = options_.process;
    sample.block = block;
    sample.iteration = candidate.iteration++;
    sample.kind = kind;
    sample.at_seconds = control_.now() - start_ - ago;
    return sample;
  }

  // Runs up to `count` iterations while `more` says so.
  void run(Candidate& candidate, std::int64_t count, std::int64_t block, SampleKind kind,
           std::vector<Sample>& samples, const std::function<bool(const Sample&)>& more) {
    candidate.step->run(count, [&](const Iteration& iteration) {
      Sample sample =
          next_sample(candidate, block, kind, iteration.ended_ago_seconds + iteration.wall_seconds);
      sample.wall_seconds = iteration.wall_seconds;
      sample.device_seconds = iteration.device_seconds;
      sample.data_wait_seconds = iteration.data_wait_seconds;
      sample.upload_seconds = iteration.upload_seconds;
      sample.exchange_seconds = iteration.exchange_seconds;
      sample.exposed_seconds = iteration.exposed_seconds;
      samples.push_back(sample);
      go_on_ = control_.go_on(progress_) && go_on_;
      return more(sample);
    });
  }

  void warm_up(Candidate& candidate) {
    std::vector<Sample> samples;
    while (!candidate.warmup.done() && go_on_) {
      run(candidate, candidate.warmup.next_count(), 0, SampleKind::warmup, samples,
          [&](const Sample& sample) {
            candidate.warmup.add(sample.wall_seconds);
            return go_on_;
          });
    }
    if (samples.empty()) return;
    sink_.measured(candidate.index, samples);
    // The last ones, in the middle: a single one may have been disturbed.
    const std::size_t last = std::min<std::size_t>(samples.size(), 3);
    std::vector<double> seconds;
    for (std::size_t i = samples.size() - last; i < samples.size(); ++i) {
      seconds.push_back(samples[i].wall_seconds);
    }
    candidate.iteration_seconds = median_of(seconds);
  }

  // Settled when all are warm: of those that do the same work, fixed counts go in turns of the same
  // length, so that they share all blocks.
  void settle_turns() {
    const bool alone = candidates_.size() < 2;
    for (Candidate& candidate : candidates_) {
      if (!candidate.iteration_seconds) continue;
      const bool lone = alone || candidate.step->works_ahead();
      candidate.cold_start = !alone && *candidate.iteration_seconds < kColdMatters;
      if (!options_.stopping.iterations) {
        candidate.turn =
            turn_length(*candidate.iteration_seconds, lone ? kLoneTurnSeconds : kSharedTurnSeconds);
      } else if (!lone) {
        const std::int64_t fitting = turn_length(*candidate.iteration_seconds, kFixedTurnSeconds);
        for (Candidate& other : candidates_) {
          if (other.set == candidate.set) other.turn = std::min(other.turn, fitting);
        }
      }
    }
  }

  [[nodiscard]] bool wanted(const Candidate& candidate) const {
    if (!candidate.alive) return false;
    // After an interruption only what no candidate may lack: a first sample.
    if (!go_on_) return candidate.measured.empty();
    if (candidate.stopping.reason() == StopReason::none) return true;
    // Others of its work may need more blocks, as long as its own time lasts: a slow one must not
    // be measured for minutes because a fast one needs many blocks.
    if (!options_.stopping.iterations && candidate.turn_seconds >= options_.stopping.max_seconds) {
      return false;
    }
    return std::any_of(candidates_.begin(), candidates_.end(), [&](const Candidate& other) {
      return other.alive && other.set == candidate.set &&
             other.stopping.reason() == StopReason::none;
    });
  }

  void run_blocks() {
    const BlockOrder orders(candidates_.size(), options_.seed);
    const auto any_wanted = [&] {
      return std::any_of(candidates_.begin(), candidates_.end(),
                         [&](const Candidate& candidate) { return wanted(candidate); });
    };
    for (std::int64_t block = 1; any_wanted(); ++block) {
      // Who is wanted is settled before the block, so that all of a set have the same blocks.
      std::vector<Candidate*> turns;
      for (const std::size_t place : orders.order(block - 1)) {
        if (wanted(candidates_[place])) turns.push_back(&candidates_[place]);
      }
      for (Candidate* candidate : turns) {
        if (wanted(*candidate) || go_on_) {
          guarded(*candidate, [&] { take_turn(*candidate, block); });
        }
      }
    }
  }

  // Waits for what others have left running.
  void settle() const {
    if (candidates_.size() < 2 || !control_.settle || !go_on_) return;
    control_.settle([&] {
      double used = processor_seconds();
      for (const Candidate& candidate : candidates_) {
        if (candidate.alive) used += candidate.step->processor_seconds().value_or(0.0);
      }
      return used;
    });
  }

  void take_turn(Candidate& candidate, std::int64_t block) {
    settle();
    const double begin = control_.now();
    std::vector<Sample> samples;
    if (candidates_.size() > 1 && candidate.cold_start && go_on_) {
      run(candidate, 1, block, SampleKind::warmup, samples, [](const Sample&) { return true; });
    }
    std::int64_t count = candidate.turn;
    if (options_.stopping.iterations) {
      count = std::min(count, *options_.stopping.iterations -
                                  static_cast<std::int64_t>(candidate.measured.size()));
    }
    run(candidate, go_on_ ? count : 1, block, SampleKind::measured, samples,
        [&](const Sample& sample) {
          candidate.measured.push_back(sample.wall_seconds);
          candidate.blocks.push_back(block);
          return go_on_;
        });
    queue(candidate, block, samples);
    candidate.turn_seconds += control_.now() - begin;
    sink_.measured(candidate.index, samples);
    (void)candidate.stopping.after_block(candidate.measured, candidate.blocks,
                                         candidate.turn_seconds);
  }

  // As many iterations are queued as are waited for, however short the turns are.
  void queue(Candidate& candidate, std::int64_t block, std::vector<Sample>& samples) {
    if (candidate.queued >= static_cast<std::int64_t>(candidate.measured.size())) return;
    if (const auto queued = candidate.step->run_queued(kQueued)) {
      candidate.queued += kQueued;
      Sample sample = next_sample(candidate, block, SampleKind::queued,
                                  static_cast<double>(kQueued) * queued->wall_seconds);
      sample.wall_seconds = queued->wall_seconds;
      sample.device_seconds = queued->device_seconds;
      samples.push_back(sample);
    }
  }

  // Time for the sensors, where turns were too short for them.
  void watch(Candidate& candidate) {
    const double turn =
        static_cast<double>(candidate.turn) * candidate.iteration_seconds.value_or(0.0);
    if (candidates_.size() < 2 || turn >= options_.watch_seconds) return;
    // Who asks for few iterations gets no long time beside them.
    const double enough = options_.stopping.iterations
                              ? std::min(options_.watch_seconds, candidate.turn_seconds)
                              : options_.watch_seconds;
    std::vector<Sample> samples;
    const double begin = control_.now();
    while (go_on_ && control_.now() - begin < enough) {
      run(candidate, candidate.turn, 0, SampleKind::watched, samples,
          [&](const Sample&) { return go_on_ && control_.now() - begin < enough; });
    }
    if (!samples.empty()) sink_.measured(candidate.index, samples);
  }

  void split(Candidate& candidate) {
    std::vector<Sample> samples;
    const double begin = control_.now();
    for (std::int64_t i = 0;
         i < kSplits && go_on_ && (i == 0 || control_.now() - begin < kSplitSeconds); ++i) {
      const std::optional<SplitIteration> phases = candidate.step->run_split();
      if (!phases) break;
      Sample sample = next_sample(candidate, 0, SampleKind::split, phases->wall_seconds);
      sample.wall_seconds = phases->wall_seconds;
      sample.forward_seconds = phases->forward_seconds;
      sample.backward_seconds = phases->backward_seconds;
      sample.optimizer_seconds = phases->optimizer_seconds;
      samples.push_back(sample);
      go_on_ = control_.go_on(progress_) && go_on_;
    }
    if (!samples.empty()) sink_.measured(candidate.index, samples);
  }

  void finish(Candidate& candidate) {
    Ending ending;
    ending.reason = candidate.stopping.reason();
    ending.warmup = candidate.warmup.text();
    if (ending.reason == StopReason::none) {
      ending.reason = StopReason::interrupted;
      ending.status = RunStatus::interrupted;
    }
    settle();
    watch(candidate);
    if (options_.split) split(candidate);
    ending.details = candidate.step->details(options_.step_times && go_on_);
    end(candidate, ending);
  }

  const MeasureOptions& options_;
  const MeasureControl& control_;
  MeasureSink& sink_;
  const MeasureProgress& progress_;
  std::vector<Candidate> candidates_;
  double start_ = 0.0;
  bool go_on_ = true;
};

// Counts how much of the measuring is done. A candidate has a fixed share of the total: its
// iterations, or the seconds that it may take. One that ends early has done all of it.
class Counter final : public MeasureSink {
 public:
  Counter(const StoppingRule& rule, std::size_t candidates, MeasureSink& next)
      : next_(next),
        by_iterations_(rule.iterations.has_value()),
        most_(by_iterations_ ? static_cast<double>(*rule.iterations) : rule.max_seconds),
        done_(candidates) {
    progress_.total = static_cast<std::int64_t>(std::ceil(most_ * static_cast<double>(candidates)));
    progress_.unit = by_iterations_ ? "iteration" : "second";
  }

  void group_begun(double now) override { next_.group_begun(now); }
  void begun(std::size_t candidate) override { next_.begun(candidate); }
  void prepared(std::size_t candidate, const Preparation& preparation) override {
    next_.prepared(candidate, preparation);
  }
  void measured(std::size_t candidate, std::span<const Sample> samples) override {
    for (const Sample& sample : samples) {
      if (sample.kind != SampleKind::measured) continue;
      const double amount = by_iterations_ ? 1.0 : sample.wall_seconds;
      set(candidate, std::min(most_, done_[candidate] + amount));
    }
    next_.measured(candidate, samples);
  }
  void readings(std::size_t candidate, std::span<const Reading> readings) override {
    next_.readings(candidate, readings);
  }
  void ended(std::size_t candidate, const Ending& ending) override {
    set(candidate, most_);
    next_.ended(candidate, ending);
  }

  [[nodiscard]] const MeasureProgress& progress() const { return progress_; }

 private:
  void set(std::size_t candidate, double amount) {
    sum_ += amount - done_[candidate];
    done_[candidate] = amount;
    progress_.done = std::min(progress_.total, static_cast<std::int64_t>(sum_ + 0.5));
  }

  MeasureSink& next_;
  bool by_iterations_;
  double most_, sum_ = 0.0;
  std::vector<double> done_;  // of each candidate
  MeasureProgress progress_;
};

}  // namespace

bool measure(const StepList& steps, const std::vector<std::vector<std::size_t>>& groups,
             const MeasureOptions& options, const MeasureControl& control, MeasureSink& sink) {
  check(options.warmup);
  check(options.stopping);
  Counter counter(options.stopping, steps.size(), sink);
  for (const auto& members : groups) {
    if (!Group(options, control, counter, counter.progress()).run(steps, members)) return false;
  }
  return true;
}

}  // namespace ridgeline
