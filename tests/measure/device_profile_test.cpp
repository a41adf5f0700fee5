// What is made of a device's records: names, clocks, steps, idle time. The records are made up, so
// that no device is needed.

#include <gtest/gtest.h>

#include <algorithm>

#include "backends/registry.h"
#include "measure/profile/device_idle.h"
#include "measure/profile/device_join.h"
#include "measure/profile/kernel_name.h"
#include "measure/profile/tool_version.h"
#include "plan/nvtx_steps.h"
#include "support/toy_networks.h"

namespace ridgeline {
namespace {

TEST(KernelName, IsWhatTheSourceSays) {
  EXPECT_EQ(demangled("_Z4poolIfLi3EEvPT_i"), "void pool<float, 3>(float*, int)");
  EXPECT_EQ(demangled("sm90_xmma_gemm_bf16"), "sm90_xmma_gemm_bf16");
}

TEST(KernelName, ShortFormsKeepTheFunction) {
  EXPECT_EQ(short_kernel_name("void pool<float, 3>(float*, int)"), "pool<…>");
  EXPECT_EQ(short_kernel_name("ridgeline::cuda::(anonymous namespace)::write_small(unsigned char*, "
                              "ridgeline::cuda::(anonymous namespace)::Small, int)"),
            "write_small");
  EXPECT_EQ(short_kernel_name("void ridgeline::cuda::(anonymous namespace)::conv<(Kind)2, "
                              "std::pair<int, float> >(Params<int>)"),
            "conv<…>");
  EXPECT_EQ(short_kernel_name("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128>(Args)"),
            "Kernel2<cutlass_80_tensorop_s1688gemm_128x128…>");
  EXPECT_EQ(short_kernel_name("sm90_xmma_gemm_bf16"), "sm90_xmma_gemm_bf16");
  EXPECT_EQ(short_kernel_name(""), "");
}

TEST(KernelName, CallsLoseTheirVersion) {
  EXPECT_EQ(plain_call_name("cudaGraphLaunch_v10000"), "cudaGraphLaunch");
  EXPECT_EQ(plain_call_name("cudaLaunchKernel_ptsz_v7000"), "cudaLaunchKernel");
  EXPECT_EQ(plain_call_name("cuLaunchKernelEx"), "cuLaunchKernelEx");
  EXPECT_EQ(plain_call_name("cuMemFree_v2"), "cuMemFree");
  EXPECT_EQ(plain_call_name("cuda_view"), "cuda_view");
}

TEST(ToolVersion, RecordsOfAnotherGenerationAreRefused) {
  EXPECT_EQ(refuse_cupti_version(130001, 130001), "");
  EXPECT_EQ(refuse_cupti_version(130001, 130000), "");  // an update changes no layout
  EXPECT_EQ(refuse_cupti_version(130001, 130200), "");
  EXPECT_EQ(refuse_cupti_version(28, 28), "");
  EXPECT_NE(refuse_cupti_version(130200, 130001), "");
  EXPECT_NE(refuse_cupti_version(130001, 140000), "");
  EXPECT_NE(refuse_cupti_version(28, 27), "");
  EXPECT_EQ(refuse_cupti_version(130001, 28),
            "it is version 28, and this build reads the records of version 13.0 (130001)");
}

TEST(DeviceClock, TakesTheTightestReading) {
  const std::vector<ClockReading> readings = {{0, 900, 5}, {1000, 1040, 6}, {2000, 2300, 7}};
  EXPECT_EQ(tightest(readings).other, 6U);
}

TEST(DeviceClock, ConvertsWithOffsetAndRate) {
  // The other clock began long before ours and runs 100 millionths slow.
  const ClockReading first{1'000'000'000, 1'000'000'200, 1'700'000'000'000'000'000};
  const ClockReading last{3'000'200'000, 3'000'200'200, 1'700'000'002'000'000'000};
  const DeviceClock clock(first, last, 500'000'000);
  EXPECT_NEAR(clock.seconds(first.other), 0.5000001, 1e-12);
  EXPECT_NEAR(clock.seconds(last.other), 2.5002001, 1e-9);
  EXPECT_NEAR(clock.seconds(first.other - 1'000'000'000), -0.4999999 - 0.0001, 1e-9);
}

TEST(DeviceClock, WithoutASecondReadingClocksRunAlike) {
  const ClockReading only{100, 100, 5000};
  EXPECT_NEAR(DeviceClock(only, only, 0).seconds(1'000'005'000), 1.0 + 1e-7, 1e-12);
  // A second reading that was disturbed by milliseconds tells no rate.
  const ClockReading disturbed{90'000'000, 90'000'000, 1'005'000};
  EXPECT_NEAR(DeviceClock(only, disturbed, 0).seconds(1'000'005'000), 1.0 + 1e-7, 1e-12);
}

// Nanoseconds from 1, as a clock of ours would tell them.
DeviceClock plain_clock() { return {{0, 0, 0}, {0, 0, 0}, 0}; }

DeviceRecord kernel(std::string name, std::uint64_t begin, std::uint32_t correlation,
                    std::uint64_t node = 0) {
  DeviceRecord record;
  record.name = std::move(name);
  record.begin = begin;
  record.end = begin + 50;
  record.stream = 7;
  record.correlation = correlation;
  record.node = node;
  return record;
}

DeviceRecord fill(std::uint64_t begin, std::uint32_t correlation, std::uint64_t node = 0) {
  DeviceRecord record = kernel("fill", begin, correlation, node);
  record.activity = Activity::fill;
  record.bytes = 64;
  return record;
}

CallRecord call(std::string name, std::uint64_t begin, std::uint64_t end,
                std::uint32_t correlation) {
  CallRecord record;
  record.name = std::move(name);
  record.begin = begin;
  record.end = end;
  record.thread = 42;
  record.correlation = correlation;
  return record;
}

// Three steps: a kernel; nothing; a fill and a kernel.
RecordedSteps three_steps() { return {{Activity::kernel}, {}, {Activity::kernel, Activity::fill}}; }

// Replay number `i`, all its activities.
void add_replay(DeviceRecords& records, std::uint32_t i) {
  const std::uint64_t begin = 1000 * (i + 1);
  const std::uint32_t correlation = 100 + i;
  records.calls.push_back(call("cudaGraphLaunch", begin - 100, begin - 50, correlation));
  // Tools do not hand records over in order.
  records.activities.push_back(kernel("gemm", begin + 200, correlation, 13));
  records.activities.push_back(kernel("conv", begin, correlation, 11));
  records.activities.push_back(fill(begin + 100, correlation, 12));
}

std::vector<ProfileEvent> on_device(const DeviceActivity& activity) {
  std::vector<ProfileEvent> events;
  std::copy_if(activity.events.begin(), activity.events.end(), std::back_inserter(events),
               [](const ProfileEvent& event) { return event.activity != Activity::runtime; });
  return events;
}

std::vector<std::int64_t> steps_of(const DeviceActivity& activity) {
  std::vector<std::int64_t> steps;
  for (const ProfileEvent& event : on_device(activity)) steps.push_back(event.step);
  return steps;
}

using Steps = std::vector<std::int64_t>;

TEST(DeviceJoin, ReplaysBelongToStepsInOrder) {
  DeviceRecords records;
  for (std::uint32_t i = 0; i < 3; ++i) add_replay(records, i);
  const DeviceActivity activity = join_records(records, three_steps(), plain_clock());
  EXPECT_TRUE(activity.missing.empty());
  EXPECT_EQ(steps_of(activity), (Steps{0, 2, 2, 0, 2, 2, 0, 2, 2}));
  const ProfileEvent first = on_device(activity)[0];
  EXPECT_EQ(first.name, "conv");
  EXPECT_EQ(first.track, "stream 7");
  EXPECT_DOUBLE_EQ(first.begin, 1000e-9);
  EXPECT_DOUBLE_EQ(first.end, 1050e-9);
  EXPECT_EQ(first.correlation, 100U);
  EXPECT_FALSE(first.bytes.has_value());
  EXPECT_EQ(on_device(activity)[1].bytes, 64);
  EXPECT_TRUE(std::is_sorted(
      activity.events.begin(), activity.events.end(),
      [](const ProfileEvent& a, const ProfileEvent& b) { return a.begin < b.begin; }));
}

TEST(DeviceJoin, AReplayWithALostRecordIsJoinedByNodesAndSaysSo) {
  DeviceRecords records;
  for (std::uint32_t i = 0; i < 3; ++i) add_replay(records, i);
  // Of the first replay, so that the one to learn from comes later.
  records.activities.erase(records.activities.begin() + 1);
  records.dropped = 1;
  const DeviceActivity activity = join_records(records, three_steps(), plain_clock());
  EXPECT_EQ(steps_of(activity), (Steps{2, 2, 0, 2, 2, 0, 2, 2}));
  ASSERT_EQ(activity.missing.size(), 2U);
  EXPECT_EQ(activity.missing[0].reason, "1 were dropped for want of room");
  EXPECT_EQ(activity.missing[1].reason,
            "1 of 3 replays did not do what was recorded: 2 activities instead of 3; 2 of their "
            "activities were found by their nodes, 0 belong to no known step");
}

TEST(DeviceJoin, WithoutAReplayThatAgreesThereAreNoSteps) {
  DeviceRecords records;
  add_replay(records, 0);
  const RecordedSteps other = {{Activity::kernel}, {Activity::kernel}};
  const DeviceActivity activity = join_records(records, other, plain_clock());
  EXPECT_EQ(steps_of(activity), (Steps{-1, -1, -1}));
  ASSERT_EQ(activity.missing.size(), 1U);
  EXPECT_NE(activity.missing[0].reason.find("3 activities instead of 2"), std::string::npos);
  EXPECT_NE(activity.missing[0].reason.find("3 belong to no known step"), std::string::npos);
}

TEST(DeviceJoin, OtherKindsOrKernelsThanRecordedAreNoMatch) {
  DeviceRecords records;
  add_replay(records, 0);
  const RecordedSteps kinds = {{Activity::kernel}, {Activity::kernel}, {Activity::kernel}};
  const DeviceActivity unlike = join_records(records, kinds, plain_clock());
  EXPECT_EQ(steps_of(unlike), (Steps{-1, -1, -1}));
  ASSERT_EQ(unlike.missing.size(), 1U);
  EXPECT_NE(unlike.missing[0].reason.find("step 1 recorded other kinds"), std::string::npos);

  add_replay(records, 1);
  records.activities.back().name = "fill of another size";
  const DeviceActivity renamed = join_records(records, three_steps(), plain_clock());
  EXPECT_EQ(steps_of(renamed), (Steps{0, 2, 2, 0, -1, 2}));
  ASSERT_EQ(renamed.missing.size(), 1U);
  EXPECT_NE(renamed.missing[0].reason.find("activity 2 of 3 is fill of another size instead of"),
            std::string::npos);
}

TEST(DeviceJoin, LaunchedStepsAreKnownFromTheirCalls) {
  DeviceRecords records;
  records.calls = {call("cudaLaunchKernel", 100, 140, 1), call("cudaMemsetAsync", 150, 160, 2),
                   call("cuLaunchKernelEx", 170, 190, 3)};
  records.origins = {{1, {0, false}}, {2, {4, false}}, {3, {4, false}}};
  records.activities = {kernel("conv", 200, 1), fill(300, 2), kernel("gemm", 400, 3)};
  const DeviceActivity activity = join_records(records, {}, plain_clock());
  EXPECT_TRUE(activity.missing.empty());
  EXPECT_EQ(steps_of(activity), (Steps{0, 4, 4}));
  ASSERT_EQ(activity.events.size(), 6U);
  EXPECT_EQ(activity.events[0].activity, Activity::runtime);
  EXPECT_EQ(activity.events[0].track, "host");
  EXPECT_EQ(activity.events[0].step, 0);
  EXPECT_EQ(activity.events[0].correlation, 1U);
}

// A copy names the driver's call, which the runtime's call contains; only the latter is shown.
TEST(DeviceJoin, InnerCallsCountAsTheirOuterCall) {
  DeviceRecords records;
  records.calls = {call("cuMemcpyHtoDAsync", 110, 130, 2), call("cudaMemcpyAsync", 100, 140, 1),
                   call("cudaGetLastError", 150, 151, 3)};
  DeviceRecord copy = kernel("copy from host to device", 200, 2);
  copy.activity = Activity::copy;
  copy.bytes = 4096;
  records.activities = {copy};
  const DeviceActivity activity = join_records(records, {}, plain_clock());
  EXPECT_TRUE(activity.missing.empty());
  ASSERT_EQ(activity.events.size(), 2U);
  EXPECT_EQ(activity.events[0].name, "cudaMemcpyAsync");
  EXPECT_EQ(activity.events[1].correlation, activity.events[0].correlation);
  EXPECT_EQ(activity.events[1].step, -1);
  EXPECT_EQ(activity.events[1].bytes, 4096);
}

TEST(DeviceJoin, LaunchesWithoutARecordAreTold) {
  DeviceRecords records;
  records.calls = {call("cudaLaunchKernel", 100, 140, 1), call("cudaLaunchKernel", 150, 160, 2),
                   call("cudaLaunchKernel", 170, 190, 3),
                   call("cudaStreamSynchronize", 200, 300, 4),
                   call("cudaLaunchKernel", 310, 320, 5)};
  records.calls.back().failed = true;
  records.origins = {{3, {0, true}}};  // recorded, not run
  records.activities = {kernel("conv", 200, 1), kernel("untimed", 0, 1)};
  records.activities.back().end = 0;
  const DeviceActivity activity = join_records(records, {}, plain_clock());
  EXPECT_EQ(on_device(activity).size(), 1U);
  ASSERT_EQ(activity.missing.size(), 2U);
  EXPECT_EQ(activity.missing[0].reason, "1 of 2 were recorded without a begin and an end");
  EXPECT_EQ(activity.missing[1].reason,
            "1 of 2 launches left no record of what they started, the first by cudaLaunchKernel");
}

TEST(DeviceJoin, StreamsAndThreadsHaveTracksOfTheirOwn) {
  DeviceRecords records;
  records.calls = {call("cudaLaunchKernel", 100, 140, 1), call("cudaLaunchKernel", 120, 130, 2)};
  records.calls[1].thread = 43;
  records.activities = {kernel("conv", 200, 1), kernel("conv", 220, 2)};
  records.activities[1].stream = 9;
  const DeviceActivity activity = join_records(records, {}, plain_clock());
  ASSERT_EQ(activity.events.size(), 4U);
  EXPECT_EQ(activity.events[0].track, "host");
  EXPECT_EQ(activity.events[1].track, "host thread 2");
  EXPECT_EQ(activity.events[2].track, "stream 7");
  EXPECT_EQ(activity.events[3].track, "stream 9");
}

TEST(DeviceJoin, SmallUploadsAreCopiesThoughAKernelMakesThem) {
  DeviceRecords records;
  records.calls = {call("cudaLaunchKernel", 100, 140, 1)};
  records.activities = {kernel("ridgeline::cuda::(anonymous namespace)::write_small(int)", 200, 1)};
  const DeviceActivity activity = join_records(records, {}, plain_clock());
  ASSERT_EQ(on_device(activity).size(), 1U);
  EXPECT_EQ(on_device(activity)[0].activity, Activity::copy);
}

TEST(DeviceJoin, NothingRecordedIsNothingSaid) {
  const DeviceActivity activity = join_records({}, three_steps(), plain_clock());
  EXPECT_TRUE(activity.events.empty());
  EXPECT_TRUE(activity.missing.empty());
}

ProfileEvent event(Activity activity, double begin, double end, std::uint64_t correlation = 0) {
  ProfileEvent made;
  made.activity = activity;
  made.begin = begin;
  made.end = end;
  made.correlation = correlation;
  return made;
}

TEST(DeviceIdle, CausesAddUpToWhatTheDeviceDidNotDo) {
  const std::vector<ProfileEvent> events = {
      event(Activity::iteration, 0.0, 10.0),
      event(Activity::runtime, 0.5, 0.7, 1),
      event(Activity::kernel, 1.0, 2.0, 1),  // 1 s before it: its launch came late
      event(Activity::kernel, 2.5, 4.0, 1),  // 0.5 s: of the same launch
      event(Activity::runtime, 3.0, 3.1, 2),
      event(Activity::copy, 4.25, 5.0, 2),  // 0.25 s: queued in time
      event(Activity::data_wait, 4.5, 6.5),
      event(Activity::runtime, 6.6, 6.7, 3),
      event(Activity::kernel, 7.0, 8.0, 3),  // 2 s: 1.5 s of them no batch was there
      event(Activity::kernel, 8.5, 9.0, 9),  // 0.5 s: its launch is not known
  };                                         // 1 s: nothing came any more
  const DeviceIdle idle = attribute_idle(events);
  EXPECT_DOUBLE_EQ(idle.host_late, 1.0 + 0.5 + 1.0);
  EXPECT_DOUBLE_EQ(idle.dependency, 0.75);
  EXPECT_DOUBLE_EQ(idle.data, 1.5);
  EXPECT_DOUBLE_EQ(idle.unknown, 0.5);
  EXPECT_DOUBLE_EQ(idle.total(), 10.0 - (1.0 + 1.5 + 0.75 + 1.0 + 0.5));
}

TEST(DeviceIdle, AnotherStreamsWorkIsNoIdleTime) {
  std::vector<ProfileEvent> events = {
      event(Activity::kernel, 0.0, 1.0, 1), event(Activity::copy, 0.5, 3.0, 2),
      event(Activity::kernel, 2.0, 2.5, 3), event(Activity::runtime, 0.1, 0.2, 4),
      event(Activity::kernel, 3.5, 4.0, 4)};
  DeviceIdle idle = attribute_idle(events);
  EXPECT_DOUBLE_EQ(idle.dependency, 0.5);
  EXPECT_DOUBLE_EQ(idle.total(), 0.5);
  // Only what lies within iterations counts.
  events.push_back(event(Activity::iteration, 0.0, 3.25));
  idle = attribute_idle(events);
  EXPECT_DOUBLE_EQ(idle.total(), 0.25);
}

TEST(DeviceIdle, WithoutADeviceThereIsNone) {
  EXPECT_EQ(attribute_idle({}).total(), 0.0);
  const std::vector<ProfileEvent> events = {event(Activity::iteration, 0.0, 2.0),
                                            event(Activity::step, 0.0, 1.0)};
  EXPECT_EQ(attribute_idle(events).total(), 0.0);
}

TEST(DeviceProfiler, TheCpuHasNoneAndSaysWhy) {
  const std::unique_ptr<Device> cpu = make_cpu_device();
  Session session(*cpu);
  const DeviceProfilerOrReason made = make_device_profiler(session, 0);
  EXPECT_EQ(made.profiler, nullptr);
  EXPECT_EQ(made.reason, "cpu computes when the host tells it to and keeps no records of its own");
}

// Writes down what it is told; marks for other tools come and go in the same order.
class Telling final : public StepObserver {
 public:
  explicit Telling(const Session& session) : marks_(session) {}
  void before_run(std::size_t plan) override {
    told += 'r';
    marks_.before_run(plan);
  }
  void after_run() override {
    told += '.';
    marks_.after_run();
  }
  void before(std::size_t step) override {
    told += step == steps++ ? '(' : '?';
    marks_.before(step);
  }
  void after(std::size_t step) override {
    told += ')';
    marks_.after(step);
  }
  std::string told;
  std::size_t steps = 0;

 private:
  NvtxSteps marks_;
};

TEST(StepObserver, HearsOfRunsAndTheirStepsInOrder) {
  const ToyNetwork toy = toy_networks()[0];
  const StepGraph step = training_graph(toy.spec, toy.build);
  const std::unique_ptr<Device> cpu = make_cpu_device();
  Session session(*cpu);
  PlanOptions options;
  options.providers = providers_of("native");
  const Session::PlanId id = session.add(make_plan(step.graph, options));
  session.prepare();
  fill_state(session, step, toy.spec, 1);
  Telling telling(session);
  session.observe(&telling);
  session.run(id);
  session.observe(nullptr);
  session.run(id);
  std::string expected = "r";
  for (std::size_t i = 0; i < session.plan(id).steps.size(); ++i) expected += "()";
  EXPECT_EQ(telling.told, expected + ".");
}

}  // namespace
}  // namespace ridgeline
