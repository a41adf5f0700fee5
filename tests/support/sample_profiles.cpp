#include "support/sample_profiles.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "measure/profile/memory_timeline.h"
#include "measure/step_times.h"
#include "train/step_runner.h"

namespace ridgeline::testing {
namespace {

void sort_by_beginning(std::vector<ProfileEvent>& events) {
  std::stable_sort(events.begin(), events.end(),
                   [](const ProfileEvent& a, const ProfileEvent& b) { return a.begin < b.begin; });
}

constexpr int kComputing = 7, kCopying = 13;

// The host queues work, the device takes it up in order: as CUPTI would see it.
class MadeUpGpu {
 public:
  explicit MadeUpGpu(Profile& profile) : profile_(profile) {}

  double now = 1e-3;  // on the host

  void on_host(Activity activity, const std::string& name, double seconds, std::int64_t step = -1) {
    add({.activity = activity,
         .name = name,
         .track = "host",
         .begin = now,
         .end = now + seconds,
         .bytes = {}},
        step);
    now += seconds;
  }

  // A runtime call.
  void call(const std::string& name, std::int64_t step = -1) {
    constexpr double kCall = 3e-6;
    ++correlation_;
    on_host(Activity::runtime, name, kCall, step);
    profile_.events.back().correlation = correlation_;
    called_ = now - kCall;
  }

  // What the last call started on a stream.
  void on_stream(Activity activity, const std::string& name, int stream, double seconds,
                 std::int64_t step = -1, std::optional<std::int64_t> bytes = {}) {
    constexpr double kWay = 2e-6;
    double& free = stream == kComputing ? computing_ : copying_;
    const double begin = std::max(free, called_ + kWay);
    free = begin + seconds;
    add({.activity = activity,
         .name = name,
         .track = fmt::format("stream {}", stream),
         .begin = begin,
         .end = free,
         .correlation = correlation_,
         .bytes = bytes},
        step);
  }

  void wait() {
    const double until = std::max({computing_, copying_, now + 1e-6});
    on_host(Activity::runtime, "cudaStreamSynchronize", until - now);
  }

  void add(ProfileEvent event, std::int64_t step) {
    event.step = step;
    event.iteration = iteration;
    profile_.events.push_back(std::move(event));
  }

  std::int64_t iteration = 0;

 private:
  Profile& profile_;
  double computing_ = 0.0, copying_ = 0.0, called_ = 0.0;
  std::uint64_t correlation_ = 100;
};

StepTime made_up_step(std::int64_t index) {
  const bool forward = index % 2 == 0;
  return {.index = index,
          .layer = fmt::format("layer{}.{}.conv1", index / 8, index % 8),
          .ops = forward ? "conv2d+bias+activation" : "conv2d_backward_weights",
          .phase = forward ? "forward" : "backward-weights",
          .provider = "cudnn",
          .kernel = "cudnn:conv2d/engine 12",
          .seconds = 1e-4,
          .flops = 1'000'000,
          .work_flops = 1'000'000,
          .bytes_read = 4096,
          .bytes_written = 1024,
          .working_set_bytes = 5120,
          .unit = "fp32",
          .flop_factor = 1.0,
          .counted_bytes = std::nullopt};
}

// As long as names of libraries' kernels are.
std::string kernel_name(std::int64_t number) {
  return fmt::format(
      "void cutlass::Kernel2<cutlass_80_tensorop_s1688fprop_optimized_tf32_128x128_16x4_nhwc_"
      "align4>(Params) [{}]",
      number);
}

}  // namespace

Profile stepped_profile(const std::string& model, std::int64_t batch, std::int64_t iterations) {
  using Clock = std::chrono::steady_clock;
  const std::unique_ptr<Device> cpu = make_cpu_device();
  PlanRequest request;
  request.backend = "native";
  StepSpec spec;
  spec.model = default_config(model);
  spec.batch = batch;
  StepRunner runner(*cpu, request);
  const Session::PlanId id = runner.add_training(spec);
  runner.prepare(0);
  const Plan& plan = runner.session().plan(id);

  Profile profile;
  profile.work.model = model;
  profile.work.batch = batch;
  profile.executor.backend = "native";
  profile.executor.device = "cpu";
  profile.executor.threads = 1;
  profile.iterations = iterations;
  profile.memory = memory_timeline(plan);
  std::vector<double> seconds(plan.steps.size());
  const Clock::time_point zero = Clock::now();
  const auto now = [&] { return std::chrono::duration<double>(Clock::now() - zero).count(); };
  for (std::int64_t i = 0; i < iterations; ++i) {
    const double begin = now();
    double before = begin;
    runner.session().run_stepwise(id, [&](std::size_t s) {
      const double end = now();
      seconds[s] = end - before;
      profile.events.push_back({.activity = Activity::step,
                                .name = plan.steps[s].layer,
                                .track = "host",
                                .begin = before,
                                .end = end,
                                .iteration = i,
                                .step = static_cast<std::int64_t>(s),
                                .bytes = {}});
      before = end;
    });
    profile.events.push_back({.activity = Activity::iteration,
                              .name = "iteration",
                              .track = "host",
                              .begin = begin,
                              .end = now(),
                              .iteration = i,
                              .bytes = {}});
    profile.readings.push_back({now(), "cpu", "rss_bytes", 1e8});
  }
  profile.steps = step_times(plan, *cpu, seconds);
  sort_by_beginning(profile.events);
  return profile;
}

Profile made_up_gpu_profile(std::int64_t iterations, std::int64_t steps, std::int64_t kernels,
                            Launching launching) {
  const bool recorded = launching == Launching::recorded;
  Profile profile;
  profile.work.model = "made up";
  profile.work.batch = 64;
  profile.executor.backend = "cudnn";
  profile.executor.device = "cuda:0";
  profile.executor.threads = 2;
  profile.iterations = iterations;
  profile.began_unix_nanoseconds = 1'700'000'000'000'000'000;
  for (std::int64_t s = 0; s < steps; ++s) {
    profile.steps.push_back(made_up_step(s));
    LiveBytes live{.step = s, .by_role = {}};
    live.by_role[static_cast<std::size_t>(Role::parameter)] = 1'000'000;
    live.by_role[static_cast<std::size_t>(Role::activation)] = 4096 * std::min(s + 1, steps - s);
    profile.memory.push_back(live);
  }

  MadeUpGpu gpu(profile);
  for (std::int64_t i = 0; i < iterations; ++i) {
    gpu.iteration = i;
    const double begin = gpu.now;
    gpu.on_host(Activity::data_wait, "data wait", 40e-6);
    const double upload = gpu.now;
    gpu.call("cudaMemcpyAsync");
    gpu.on_stream(Activity::copy, "copy from host to device", kCopying, 50e-6, -1, 602'112);
    gpu.add({.activity = Activity::upload,
             .name = "upload",
             .track = "host",
             .begin = upload,
             .end = gpu.now,
             .bytes = {}},
            -1);
    gpu.call("cudaMemsetAsync");
    gpu.on_stream(Activity::fill, "fill", kComputing, 2e-6, -1, 4096);
    if (recorded) gpu.call("cudaGraphLaunch");
    for (std::int64_t s = 0; s < steps; ++s) {
      const double before = gpu.now;
      for (std::int64_t k = 0; k < kernels; ++k) {
        if (!recorded) gpu.call("cudaLaunchKernel", s);
        gpu.on_stream(Activity::kernel, kernel_name(k), kComputing,
                      8e-6 + 1e-9 * static_cast<double>(s), s);
      }
      if (recorded) continue;
      gpu.add({.activity = Activity::step,
               .name = "step",
               .track = "host",
               .begin = before,
               .end = gpu.now,
               .bytes = {}},
              s);
    }
    for (int thread = 0; thread < 2; ++thread) {
      gpu.add({.activity = Activity::body,
               .name = "decode",
               .track = fmt::format("thread {}", thread),
               .begin = begin,
               .end = begin + 30e-6,
               .bytes = {}},
              -1);
    }
    gpu.wait();
    gpu.add({.activity = Activity::iteration,
             .name = "iteration",
             .track = "host",
             .begin = begin,
             .end = gpu.now,
             .bytes = {}},
            -1);
    profile.readings.push_back({gpu.now, "cuda:0", "gpu_power_watts", 300.0});
    profile.readings.push_back({gpu.now, "cpu", "rss_bytes", 2e9});
  }
  sort_by_beginning(profile.events);
  return profile;
}

}  // namespace ridgeline::testing
