#include "measure/profile/cupti_profiler.h"

#include "base/clock.h"
#include "base/error.h"
#include "measure/profile/cupti_capture.h"
#include "measure/profile/cupti_library.h"
#include "measure/profile/cupti_records.h"
#include "measure/profile/device_join.h"
#include "plan/nvtx_steps.h"

namespace ridgeline {
namespace {

std::int64_t nanoseconds_of(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

class CuptiProfiler final : public DeviceProfiler, private StepObserver {
 public:
  CuptiProfiler(Session& session, Session::PlanId plan)
      : session_(session),
        plan_(plan),
        stream_(static_cast<cudaStream_t>(session.device().queue())),
        marks_(session) {}
  CuptiProfiler(const CuptiProfiler&) = delete;
  CuptiProfiler& operator=(const CuptiProfiler&) = delete;
  // Left in the middle when what it watched failed.
  ~CuptiProfiler() override {
    if (running_) (void)stop();
  }

  void start(Clock::time_point zero) override {
    ensure(!running_, "the device is watched already");
    cupti::begin_records();
    running_ = true;
    zero_ = nanoseconds_of(zero);
    recorded_.assign(session_.plan(plan_).steps.size(), {});
    census_.restart();
    began_ = cupti::read_clock();
    session_.observe(this);
  }

  [[nodiscard]] DeviceActivity stop() override {
    ensure(running_, "the device is not watched");
    running_ = false;
    DeviceActivity activity;
    // What ran before a failure is worth having: each part is tried by itself.
    try {
      session_.device().synchronize();
    } catch (const Error& error) {
      activity.missing.push_back({"the last activities of the device", error.what()});
    }
    session_.observe(nullptr);
    try {
      const ClockReading ended = cupti::read_clock();
      DeviceActivity joined =
          join_records(cupti::end_records(), recorded_, DeviceClock(began_, ended, zero_));
      activity.events = std::move(joined.events);
      activity.missing.insert(activity.missing.end(), joined.missing.begin(), joined.missing.end());
    } catch (const Error& error) {
      activity.missing.push_back({"records of the device", error.what()});
    }
    if (!census_.problem().empty()) {
      activity.missing.push_back({"launches of the recording", census_.problem()});
    }
    return activity;
  }

 private:
  void before_run(std::size_t plan) override {
    is_ours_ = plan == plan_;
    marks_.before_run(plan);
  }
  void after_run() override { marks_.after_run(); }

  void before(std::size_t step) override {
    marks_.before(step);
    if (!is_ours_) return;
    records_ = cupti::is_recording(stream_);
    if (records_ && step == 0) census_.restart();
    cupti::enter_origin({static_cast<std::int64_t>(step), records_});
  }
  void after(std::size_t step) override {
    if (is_ours_) {
      cupti::leave_origin();
      if (records_) recorded_[step] = census_.added(stream_);
    }
    marks_.after(step);
  }

  Session& session_;
  Session::PlanId plan_;
  cudaStream_t stream_;
  NvtxSteps marks_;
  cupti::CaptureCensus census_;
  RecordedSteps recorded_;
  ClockReading began_;
  std::int64_t zero_ = 0;
  bool running_ = false, is_ours_ = false, records_ = false;
};

}  // namespace

DeviceProfilerOrReason make_cupti_profiler(Session& session, Session::PlanId plan) {
  const cupti::Library& library = cupti::library();
  if (!library.unavailable.empty()) return {nullptr, library.unavailable};
  return {std::make_unique<CuptiProfiler>(session, plan), {}};
}

}  // namespace ridgeline
