#include "measure/profile/collect.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <utility>

#include "backends/registry.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "measure/profile/breakdown.h"
#include "measure/profile/counters.h"
#include "measure/profile/device_profiler.h"
#include "measure/profile/thread_activity.h"
#include "measure/step_times.h"
#include "measure/telemetry/telemetry.h"

namespace ridgeline {
namespace {

constexpr std::int64_t kWarmup = 3;  // a device records its launches in the second

struct Span {
  std::size_t step = 0;
  Clock::time_point begin, end;
};

// A kernel that another thread runs, and when it ran.
class TimedKernel final : public Kernel {
 public:
  TimedKernel(std::size_t step, const Kernel& kernel) : step_(step), kernel_(kernel) {}

  void run(const KernelArgs& args) const override {
    const Clock::time_point begin = Clock::now();
    kernel_.run(args);
    spans_.push_back({step_, begin, Clock::now()});
  }
  // Between two runs of the plan: what was seen since the last call.
  [[nodiscard]] std::vector<Span> take() const { return std::exchange(spans_, {}); }

 private:
  std::size_t step_;
  const Kernel& kernel_;
  mutable std::vector<Span> spans_;
};

// Steps as the host runs them, those that other threads run beside them, and what the threads do of
// each.
class HostWatch final : public StepObserver {
 public:
  explicit HostWatch(std::size_t steps) : threads_(thread_count()) { spans_.reserve(steps); }

  [[nodiscard]] bool watches_beside() const override { return true; }
  [[nodiscard]] const Kernel& beside(std::size_t step, const Kernel& kernel) override {
    return beside_.try_emplace(step, step, kernel).first->second;
  }

  void before(std::size_t step) override {
    threads_.set_step(static_cast<std::int64_t>(step));
    begin_ = Clock::now();
  }
  void after(std::size_t step) override {
    threads_.set_step(-1);
    // Its launch takes no time.
    if (!beside_.contains(step)) spans_.push_back({step, begin_, Clock::now()});
  }

  std::vector<Span>& spans() { return spans_; }
  [[nodiscard]] std::vector<Span> spans_beside() {
    std::vector<Span> all;
    for (const auto& [step, kernel] : beside_) {
      const std::vector<Span> some = kernel.take();
      all.insert(all.end(), some.begin(), some.end());
    }
    return all;
  }
  ThreadActivity& threads() { return threads_; }

 private:
  ThreadActivity threads_;
  std::vector<Span> spans_;
  std::map<std::size_t, TimedKernel> beside_;  // by step
  Clock::time_point begin_;
};

// What the processor counts in each step.
class CounterWatch final : public StepObserver {
 public:
  explicit CounterWatch(std::size_t steps) : sums_(steps) {}

  void before(std::size_t /*step*/) override { before_ = counters_.read(); }
  void after(std::size_t step) override {
    const CounterValues counted = counters_.read() - before_;
    StepCounters& sum = sums_[step];
    sum.step = static_cast<std::int64_t>(step);
    add(sum.instructions, counted.instructions);
    add(sum.cycles, counted.cycles);
    add(sum.cache_misses, counted.cache_misses);
  }
  [[nodiscard]] std::vector<StepCounters> means(std::int64_t iterations) const {
    std::vector<StepCounters> means = sums_;
    for (StepCounters& mean : means) {
      for (auto* value : {&mean.instructions, &mean.cycles, &mean.cache_misses}) {
        if (*value) **value /= static_cast<double>(iterations);
      }
    }
    return means;
  }

 private:
  static void add(std::optional<double>& sum, const std::optional<double>& part) {
    if (part) sum = sum.value_or(0.0) + *part;
  }

  HardwareCounters counters_;
  CounterValues before_;
  std::vector<StepCounters> sums_;
};

// While one lives, the session tells an observer of its steps.
class Observing {
 public:
  Observing(Session& session, StepObserver& observer) : session_(session) {
    session_.observe(&observer);
  }
  Observing(const Observing&) = delete;
  Observing& operator=(const Observing&) = delete;
  ~Observing() { session_.observe(nullptr); }

 private:
  Session& session_;
};

class Collection {
 public:
  Collection(MeasuredStep& step, const CollectOptions& options) : step_(step), options_(options) {}

  Collected collect() {
    collected_.profile.work = step_.subject().work;
    collected_.profile.executor = step_.subject().executor;
    collected_.preparation = step_.prepare();
    const auto engine = step_.engine();
    if (!engine) {
      bad_input("{}: peers cannot be profiled, only backends", step_.subject().executor.backend);
    }
    session_ = engine->session;
    plan_ = engine->plan;
    collected_.memory = timeline_of(plan());
    collected_.profile.memory = collected_.memory.live();
    unwatched(kWarmup, SampleKind::warmup);
    unwatched(options_.iterations, SampleKind::measured);
    try {
      watch();
      if (go_on_ && on_device()) unwatched(kWarmup, SampleKind::warmup);
      if (go_on_) unwatched(options_.iterations, SampleKind::measured);
      if (go_on_ && options_.counters) count();
    } catch (const std::exception& error) {
      if (walls_.empty()) throw;
      collected_.status = RunStatus::failed;
      collected_.error = error.what();
    }
    if (!go_on_) {
      if (walls_.empty()) fail("interrupted before the first iteration");
      collected_.status = RunStatus::interrupted;
    }
    conclude();
    return std::move(collected_);
  }

 private:
  [[nodiscard]] const Plan& plan() const { return session_->plan(plan_); }
  [[nodiscard]] bool on_device() const { return session_->device().kind() != "cpu"; }
  [[nodiscard]] double at(Clock::time_point time) const {
    return std::chrono::duration<double>(time - zero_).count();
  }
  void miss(std::string what, std::string reason) {
    collected_.profile.missing.push_back({std::move(what), std::move(reason)});
  }

  bool counted_on() {
    ++done_;
    const std::int64_t total = 2 * kWarmup + (options_.counters ? 4 : 3) * options_.iterations;
    if (options_.go_on) go_on_ = options_.go_on(done_, std::max(done_, total)) && go_on_;
    return go_on_;
  }

  void unwatched(std::int64_t count, SampleKind kind) {
    if (!go_on_) return;
    step_.run(count, [&](const Iteration& iteration) {
      Sample sample;
      sample.iteration = static_cast<std::int64_t>(collected_.samples.size());
      sample.kind = kind;
      sample.at_seconds = seconds_since(begun_) - iteration.wall_seconds;
      sample.wall_seconds = iteration.wall_seconds;
      sample.device_seconds = iteration.device_seconds;
      sample.data_wait_seconds = iteration.data_wait_seconds;
      sample.upload_seconds = iteration.upload_seconds;
      collected_.samples.push_back(sample);
      return counted_on();
    });
  }

  void watch() {
    zero_ = Clock::now();
    collected_.profile.began_unix_nanoseconds =
        std::chrono::duration_cast<std::chrono::nanoseconds>(
            std::chrono::system_clock::now().time_since_epoch())
            .count();
    std::unique_ptr<TelemetrySampler> sampler;
    if (options_.telemetry_hz > 0.0) {
      sampler = std::make_unique<TelemetrySampler>(all_sensors(), options_.telemetry_hz, zero_);
    }
    try {
      on_device() ? watch_device() : watch_host();
    } catch (...) {
      if (sampler) take_readings(*sampler);
      throw;
    }
    if (sampler) take_readings(*sampler);
  }

  void take_readings(TelemetrySampler& sampler) {
    Profile& profile = collected_.profile;
    sampler.stop();
    profile.readings = sampler.take();
    const std::vector<Finding> found = findings_of(profile.readings);
    profile.findings.insert(profile.findings.end(), found.begin(), found.end());
    collected_.details.numbers["telemetry_overhead_share"] = sampler.overhead().share;
    collected_.details.numbers["telemetry_rate_hz"] = sampler.overhead().rate_hz;
  }

  // The iteration itself, its wait for data and the hand-over.
  void add_host_events(const Iteration& iteration) {
    const auto number = static_cast<std::int64_t>(walls_.size());
    const Clock::time_point began = iteration.began.value_or(Clock::now());
    walls_.push_back(iteration.wall_seconds);
    add(Activity::iteration, fmt::format("iteration {}", number), "host", at(began),
        at(began) + iteration.wall_seconds, number, -1);
    if (!iteration.asked_for_data) return;
    const double asked = at(*iteration.asked_for_data);
    const double came = asked + iteration.data_wait_seconds.value_or(0.0);
    add(Activity::data_wait, "waiting for a batch", "host", asked, came, number, -1);
    add(Activity::upload, "handing the batch over", "host", came,
        came + iteration.upload_seconds.value_or(0.0), number, -1);
  }

  void add(Activity activity, std::string name, std::string track, double begin, double end,
           std::int64_t iteration, std::int64_t step) {
    collected_.profile.events.push_back({.activity = activity,
                                         .name = std::move(name),
                                         .track = std::move(track),
                                         .begin = begin,
                                         .end = end,
                                         .iteration = iteration,
                                         .step = step,
                                         .bytes = std::nullopt});
  }

  void watch_host() {
    HostWatch watch(plan().steps.size());
    const Observing observing(*session_, watch);
    std::vector<std::string> names;
    for (const Step& step : plan().steps) {
      names.push_back(fmt::format("{} {}", step.layer, ops_of(plan(), step)));
    }
    step_.run(options_.iterations, [&](const Iteration& iteration) {
      const auto number = static_cast<std::int64_t>(walls_.size());
      add_host_events(iteration);
      for (const Span& span : watch.spans()) {
        add(Activity::step, names[span.step], "host", at(span.begin), at(span.end), number,
            static_cast<std::int64_t>(span.step));
      }
      watch.spans().clear();
      for (const Span& span : watch.spans_beside()) {
        add(Activity::exchange, names[span.step], "exchange", at(span.begin), at(span.end), number,
            static_cast<std::int64_t>(span.step));
      }
      for (const ThreadActivity::Body& body : watch.threads().take()) {
        const std::string& name =
            body.step < 0 ? kNoStep : names[static_cast<std::size_t>(body.step)];
        add(Activity::body, name, fmt::format("thread {}", body.thread), at(body.begin),
            at(body.end), number, body.step);
      }
      return counted_on();
    });
    if (watch.threads().lost() > 0) {
      miss("thread activity",
           fmt::format("{} parts of parallel regions found no room", watch.threads().lost()));
    }
    const auto& steps = plan().steps;
    for (const Backend* backend : all_backends()) {
      const auto is_its = [&](const Step& step) { return step.provider == backend->name; };
      if (!backend->own_threads || std::none_of(steps.begin(), steps.end(), is_its)) continue;
      miss(fmt::format("thread activity of {}'s steps", backend->name), "it runs its own threads");
    }
  }

  void watch_iterations() {
    step_.run(options_.iterations, [&](const Iteration& iteration) {
      add_host_events(iteration);
      return counted_on();
    });
  }

  void watch_device() {
    DeviceProfilerOrReason made = make_device_profiler(*session_, plan_);
    if (made.profiler != nullptr) {
      try {
        made.profiler->start(zero_);
      } catch (const Error& error) {
        made.reason = error.what();
        made.profiler.reset();
      }
    }
    if (made.profiler == nullptr) {
      miss("activity of the device", made.reason + "; each step is timed by events instead");
      watch_iterations();
      // All ranks make as many passes.
      const bool alone = collected_.profile.executor.ranks == 1;
      stepwise_ = measure_steps(*session_, plan_,
                                alone ? StepMeasuring() : StepMeasuring{.patience_seconds = 0.0})
                      .seconds;
      return;
    }
    try {
      // Launches are recorded anew, for the profiler.
      step_.run(2, [](const Iteration&) { return true; });
      watch_iterations();
    } catch (...) {
      try {
        add_device_events(made.profiler->stop());
      } catch (const Error& error) {
        miss("activity of the device", error.what());
      }
      throw;
    }
    add_device_events(made.profiler->stop());
  }

  // Into the iterations in which they began; what came before the first one was to settle.
  void add_device_events(DeviceActivity activity) {
    Profile& profile = collected_.profile;
    profile.missing.insert(profile.missing.end(), activity.missing.begin(), activity.missing.end());
    std::vector<std::pair<double, double>> spans;
    for (const ProfileEvent& event : profile.events) {
      if (event.activity == Activity::iteration) spans.emplace_back(event.begin, event.end);
    }
    if (spans.empty()) return;
    for (ProfileEvent& event : activity.events) {
      const auto after =
          std::upper_bound(spans.begin(), spans.end(), event.begin,
                           [](double begin, const auto& span) { return begin < span.first; });
      if (after == spans.begin()) continue;
      const auto number = after - spans.begin() - 1;
      if (event.begin <= spans[static_cast<std::size_t>(number)].second) event.iteration = number;
      profile.events.push_back(std::move(event));
    }
  }

  void count() {
    Profile& profile = collected_.profile;
    if (on_device()) return miss("hardware counters", "the processor's count on the cpu alone");
    std::optional<CounterWatch> watch;
    try {
      watch.emplace(plan().steps.size());
    } catch (const Error& error) {
      return miss("hardware counters", error.what());
    }
    std::int64_t counted = 0;
    {
      const Observing observing(*session_, *watch);
      step_.run(options_.iterations, [&](const Iteration&) {
        ++counted;
        return counted_on();
      });
    }
    profile.counters = watch->means(counted);
  }

  void conclude() {
    Profile& profile = collected_.profile;
    profile.iterations = static_cast<std::int64_t>(walls_.size());
    std::stable_sort(
        profile.events.begin(), profile.events.end(),
        [](const ProfileEvent& a, const ProfileEvent& b) { return a.begin < b.begin; });
    const SharedTime shared = stepwise_.empty()
                                  ? share_time(profile.events, plan().steps.size(), !on_device())
                                  : share_time(walls_, stepwise_);
    profile.profiled_seconds = shared.wall;
    profile.breakdown = shared.breakdown;
    profile.outside = shared.outside;
    profile.steps = step_times(plan(), session_->device(), shared.steps);
    for (const StepCounters& counters : profile.counters) {
      if (!counters.cache_misses) continue;
      profile.steps[static_cast<std::size_t>(counters.step)].counted_bytes =
          *counters.cache_misses * kCacheLineBytes;
    }
    std::vector<double> unwatched;
    for (const Sample& sample : collected_.samples) {
      if (sample.kind == SampleKind::measured) unwatched.push_back(sample.wall_seconds);
    }
    profile.unprofiled_seconds = middle_mean(unwatched);
    if (overhead_share(profile) > kMostOverhead) {
      profile.findings.push_back(
          {.name = "profiling overhead",
           .severity = "warning",
           .evidence = fmt::format(
               "a watched iteration took {}, one that was not watched {}: {:.0f}% more",
               duration_text(profile.profiled_seconds), duration_text(profile.unprofiled_seconds),
               100.0 * overhead_share(profile))});
    }
    try {
      StepDetails details = step_.details(false);
      details.numbers.merge(collected_.details.numbers);
      collected_.details = std::move(details);
    } catch (const Error&) {
      // After a failure the device may tell nothing more: the profile stands without it.
      if (collected_.status != RunStatus::failed) throw;
    }
  }

  inline static const std::string kNoStep = "between steps";

  MeasuredStep& step_;
  const CollectOptions& options_;
  Collected collected_;
  Session* session_ = nullptr;
  Session::PlanId plan_ = 0;
  Clock::time_point begun_ = Clock::now(), zero_;
  std::vector<double> walls_;     // of the watched iterations
  std::vector<double> stepwise_;  // of steps timed by events; empty: by their activity
  std::int64_t done_ = 0;
  bool go_on_ = true;
};

}  // namespace

double overhead_share(const Profile& profile) {
  return profile.profiled_seconds / profile.unprofiled_seconds - 1.0;
}

Collected collect_profile(MeasuredStep& step, const CollectOptions& options) {
  if (options.iterations < 1) {
    bad_input("{} iterations: a profile needs at least 1", options.iterations);
  }
  struct Closing {
    MeasuredStep& step;
    ~Closing() { step.close(); }
  };
  const Closing closing{step};
  return Collection(step, options).collect();
}

}  // namespace ridgeline
