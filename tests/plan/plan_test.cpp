#include "plan/plan.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "backends/auto.h"
#include "backends/registry.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/text_file.h"
#include "plan/memory.h"
#include "plan/session.h"
#include "support/queued_device.h"
#include "support/toy_networks.h"
#include "support/worst_difference.h"

namespace ridgeline {
namespace {

struct Case {
  ToyNetwork network;
  const Backend* backend;
};

std::vector<Case> all_cases() {
  std::vector<Case> cases;
  for (const ToyNetwork& network : toy_networks()) {
    for (const Backend* backend : usable_backends()) cases.push_back({network, backend});
  }
  return cases;
}

PlanOptions options_for(const Backend& backend, std::vector<std::string> disabled = {}) {
  return {.providers = providers_of(backend.name),
          .preferred = {},
          .disabled_passes = std::move(disabled)};
}

// Relative.
double worst_ratio(const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < a.size(); ++i) ratios.push_back(a[i] / b[i]);
  return testing::worst_difference(ratios, std::vector<double>(b.size(), 1.0));
}

int count_kind(const Plan& plan, OpKind kind) {
  return static_cast<int>(
      std::count_if(plan.steps.begin(), plan.steps.end(), [&](const Step& step) {
        return std::any_of(step.nodes.begin(), step.nodes.end(),
                           [&](NodeId node) { return plan.graph->node(node).kind == kind; });
      }));
}

class PlanTest : public ::testing::TestWithParam<Case> {
 protected:
  [[nodiscard]] const ToyNetwork& network() const { return GetParam().network; }
  [[nodiscard]] const Backend& backend() const { return *GetParam().backend; }
  std::unique_ptr<Device> cpu = make_cpu_device();
  std::unique_ptr<Device> device = make_device(std::string(GetParam().backend->device));
};

TEST_P(PlanTest, LossesFollowTheReference) {
  const std::vector<double> losses = train_losses(network(), backend(), *device, 6);
  const std::vector<double> expected = train_losses(network(), reference_backend, *cpu, 6);
  EXPECT_LT(worst_ratio(losses, expected), 2e-4);
  EXPECT_LT(losses.back(), losses.front()) << "the network learns its batch";
}

TEST_P(PlanTest, FirstLossIsThatOfTheReference) {
  const double expected = train_losses(network(), reference_backend, *cpu, 1)[0];
  EXPECT_NEAR(train_losses(network(), backend(), *device, 1)[0], expected, 1e-6 * expected);
}

TEST_P(PlanTest, TwoRunsAreBitwiseEqual) {
  EXPECT_EQ(train_losses(network(), backend(), *device, 4),
            train_losses(network(), backend(), *device, 4));
}

TEST_P(PlanTest, FirstLossIsTheSameOnEveryThreadCount) {
  const int threads = thread_count();
  std::vector<double> first;
  for (const int count : {1, 2, 3}) {
    set_thread_count(count);
    first.push_back(train_losses(network(), backend(), *device, 1)[0]);
  }
  set_thread_count(threads);
  EXPECT_NEAR(first[1], first[0], 1e-6 * first[0]);
  EXPECT_NEAR(first[2], first[0], 1e-6 * first[0]);
}

TEST_P(PlanTest, EveryPassCanBeSwitchedOff) {
  const std::vector<double> all_on = train_losses(network(), backend(), *device, 4);
  for (const PassInfo& pass : kPasses) {
    const std::vector<double> off =
        train_losses(network(), backend(), *device, 4, {std::string(pass.name)});
    EXPECT_LT(worst_ratio(off, all_on), 1e-4) << "without " << pass.name;
  }
}

TEST_P(PlanTest, RunsOnADeviceWithAQueueAndMemoryOfItsOwn) {
  if (backend().device != "cpu") GTEST_SKIP() << "has one of its own";
  const std::unique_ptr<Device> queued = make_queued_device();
  EXPECT_EQ(train_losses(network(), backend(), *queued, 3),
            train_losses(network(), backend(), *device, 3));
}

TEST_P(PlanTest, NothingAliveSharesMemory) {
  const StepGraph step = training_graph(network().spec, network().build);
  const Plan plan = make_plan(step.graph, options_for(backend()));
  struct Use {
    std::int64_t begin, end;
    std::int32_t first, last;
  };
  std::vector<Use> uses;
  for (std::size_t id = 0; id < plan.forms.size(); ++id) {
    const Form& form = plan.forms[id];
    if (form.view_of != kNoForm || form.first_step < 0 || plan.in_state(static_cast<FormId>(id))) {
      continue;
    }
    uses.push_back({form.offset, form.offset + form.bytes, form.first_step, form.last_step});
  }
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const auto now = static_cast<std::int32_t>(s);
    const auto bytes = static_cast<std::int64_t>(plan.steps[s].kernel->workspace_bytes);
    const std::int64_t begin = plan.steps[s].workspace_offset;
    if (bytes > 0) uses.push_back({begin, begin + bytes, now, now});
  }
  ASSERT_GT(uses.size(), 10U);
  for (std::size_t a = 0; a < uses.size(); ++a) {
    EXPECT_LE(uses[a].end, plan.scratch_bytes);
    EXPECT_EQ(uses[a].begin % kAlignment, 0);
    for (std::size_t b = a + 1; b < uses.size(); ++b) {
      const bool together = uses[a].first <= uses[b].last && uses[b].first <= uses[a].last;
      const bool overlap = uses[a].begin < uses[b].end && uses[b].begin < uses[a].end;
      EXPECT_FALSE(together && overlap) << a << " and " << b;
    }
  }
}

TEST_P(PlanTest, PlannedPeakIsTheArenasMeasuredPeak) {
  if (backend().device != "cpu") GTEST_SKIP() << "the arena is not the host's to look at";
  const StepGraph step = training_graph(network().spec, network().build);
  Session session(*device);
  const Session::PlanId id = session.add(make_plan(step.graph, options_for(backend())));
  session.prepare();
  fill_state(session, step, network().spec, 1);
  // The last byte that a step changes, whatever lay there before.
  const auto last_touched = [&](std::byte pattern) {
    std::memset(session.scratch().data(), static_cast<int>(pattern), session.scratch().size());
    session.run(id);
    std::size_t last = session.scratch().size();
    while (last > 0 && session.scratch()[last - 1] == pattern) --last;
    return static_cast<std::int64_t>(last);
  };
  const std::int64_t measured =
      std::max(last_touched(std::byte{0xA5}), last_touched(std::byte{0x5A}));
  EXPECT_EQ(aligned(measured), session.plan(id).scratch_bytes);
}

TEST_P(PlanTest, MemoryByRoleAddsUpToTheArenas) {
  if (backend().gradients_in_any_layout) GTEST_SKIP() << "some gradients lie in scratch";
  const StepGraph step = training_graph(network().spec, network().build);
  Session session(*device);
  const Session::PlanId id = session.add(make_plan(step.graph, options_for(backend())));
  const MemoryUse use = session.plan(id).memory();
  std::int64_t state = 0, scratch = 0;
  for (int role = 0; role < kRoles; ++role) {
    (is_persistent(static_cast<Role>(role)) ? state : scratch) += use.of(static_cast<Role>(role));
  }
  EXPECT_EQ(state + aligned(sizeof(StepState)), session.state_bytes());
  // What lives at the fullest step fills the arena; the rest is lost between blocks.
  EXPECT_LE(scratch, session.scratch_bytes());
  EXPECT_GE(scratch, session.scratch_bytes() * 3 / 4);
}

TEST_P(PlanTest, EvaluationSharesTheTrainedParameters) {
  const StepGraph train = training_graph(network().spec, network().build);
  const StepGraph evaluate = evaluation_graph(network().spec, network().build);
  StepSpec smaller_spec = network().spec;
  smaller_spec.batch = 2;
  const StepGraph smaller = evaluation_graph(smaller_spec, network().build);
  Session session(*device);
  const Session::PlanId train_id = session.add(make_plan(train.graph, options_for(backend())));
  const Session::PlanId eval_id = session.add(make_plan(evaluate.graph, options_for(backend())));
  const Session::PlanId small_id = session.add(make_plan(smaller.graph, options_for(backend())));
  session.prepare();
  fill_state(session, train, network().spec, 1);
  const auto evaluated = [&] {
    session.run(eval_id);
    return session.read_value(eval_id, evaluate.logits);
  };
  const std::vector<double> before = evaluated();
  session.run(train_id);
  const std::vector<double> after = evaluated();
  EXPECT_NE(before, after);
  // The first two rows of the batch, alone, give the same logits: nothing depends on the batch.
  session.step_state().valid_rows = 2;
  session.run(small_id);
  const std::vector<double> small = session.read_value(small_id, smaller.logits);
  for (std::size_t i = 0; i < small.size(); ++i) EXPECT_NEAR(small[i], after[i], 1e-4);
}

TEST_P(PlanTest, PrintsItsStepsAndMemory) {
  const StepGraph step = training_graph(network().spec, network().build);
  const Plan plan = make_plan(step.graph, options_for(backend()));
  const std::string text = plan.text(true);
  EXPECT_NE(text.find("conv2d"), std::string::npos);
  EXPECT_NE(text.find(std::string(backend().name) + ":"), std::string::npos);
  EXPECT_NE(text.find("scratch arena"), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Toys, PlanTest, ::testing::ValuesIn(all_cases()),
                         [](const auto& instance) {
                           return instance.param.network.name + "_" +
                                  std::string(instance.param.backend->name);
                         });

// For ThreadSanitizer, which sees our kernels' threads but not those of OpenMP.
TEST(ThreadsNative, KernelsShareNothingUnguarded) {
  const int threads = thread_count();
  set_thread_count(3);
  const std::unique_ptr<Device> cpu = make_cpu_device();
  for (const ToyNetwork& network : toy_networks()) {
    const std::vector<double> losses = train_losses(network, native_backend, *cpu, 3);
    EXPECT_LT(losses.back(), losses.front()) << network.name;
  }
  set_thread_count(threads);
}

TEST(SlicesTest, ConcatenationCostsNoCopyOnNative) {
  const ToyNetwork network = toy_networks()[1];
  const StepGraph step = training_graph(network.spec, network.build);
  const Plan plan = make_plan(step.graph, options_for(native_backend));
  EXPECT_EQ(count_kind(plan, OpKind::concat), 0) << plan.text(false);
  EXPECT_EQ(count_kind(plan, OpKind::slice), 0) << plan.text(false);
  const Plan copying = make_plan(step.graph, options_for(native_backend, {"slices"}));
  EXPECT_EQ(count_kind(copying, OpKind::concat), 4);
  EXPECT_LT(plan.scratch_bytes, copying.scratch_bytes);
}

TEST(SlicesTest, ConcatenationIsAVisibleCopyWhereAProviderCannotWriteSlices) {
  const ToyNetwork network = toy_networks()[1];
  const StepGraph step = training_graph(network.spec, network.build);
  const Plan plan = make_plan(step.graph, options_for(onednn_backend));
  EXPECT_GT(count_kind(plan, OpKind::concat), 0);
}

TEST(SelectionTest, AnUnsupportedTypeIsRefusedWithTheReasons) {
  ToyNetwork network = toy_networks()[0];
  network.spec.dtype = DType::f64;
  const StepGraph step = training_graph(network.spec, network.build);
  try {
    (void)make_plan(step.graph, options_for(native_backend));
    FAIL() << "native has no kernels in f64";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("f64"), std::string::npos) << error.what();
  }
}

class AutoTest : public ::testing::Test {
 protected:
  AutoTest()
      : folder(std::filesystem::temp_directory_path() /
               ("ridgeline_auto_" + std::to_string(getpid()))) {
    std::filesystem::remove_all(folder);
  }
  ~AutoTest() override { std::filesystem::remove_all(folder); }

  [[nodiscard]] std::string plan_text() const {
    const ToyNetwork network = toy_networks()[0];
    const std::unique_ptr<Device> cpu = make_cpu_device();
    return plan_for(training_graph(network.spec, network.build).graph,
                    {.backend = "auto", .disabled_passes = {}, .cache = file()}, *cpu)
        .text(false);
  }
  [[nodiscard]] std::filesystem::path file() const { return folder / "deep" / "choices.json"; }

  std::filesystem::path folder;
};

TEST_F(AutoTest, TheCachedChoiceGivesTheSamePlan) {
  const std::string first = plan_text();
  ASSERT_TRUE(std::filesystem::exists(file()));
  const auto written = std::filesystem::last_write_time(file());
  EXPECT_EQ(plan_text(), first);
  EXPECT_EQ(std::filesystem::last_write_time(file()), written) << "nothing was measured again";
}

TEST_F(AutoTest, ABrokenCacheIsMeasuredAgain) {
  std::filesystem::create_directories(file().parent_path());
  std::ofstream(file()) << "{ not json";
  EXPECT_FALSE(plan_text().empty());
  EXPECT_EQ(read_text(file()).find("not json"), std::string::npos);
}

// A choice that was measured for other shapes serves the call, and is not remembered as measured.
TEST_F(AutoTest, ABorrowedChoiceIsNotStored) {
  const ToyNetwork network = toy_networks()[0];
  const std::unique_ptr<Device> cpu = make_cpu_device();
  PlanRequest request{.backend = "auto", .disabled_passes = {}, .cache = file()};
  request.by_structure = std::make_shared<PlanChoices>();
  const auto stored = [&] {
    std::ifstream stream(file());
    return nlohmann::json::parse(stream).size();
  };
  (void)plan_for(training_graph(network.spec, network.build).graph, request, *cpu);
  ASSERT_EQ(stored(), 1U);
  StepSpec smaller = network.spec;
  smaller.batch = 1;
  (void)plan_for(training_graph(smaller, network.build).graph, request, *cpu);
  EXPECT_EQ(stored(), 1U);
  // Without the other one it is measured.
  request.by_structure = nullptr;
  (void)plan_for(training_graph(smaller, network.build).graph, request, *cpu);
  EXPECT_EQ(stored(), 2U);
}

TEST_F(AutoTest, UnknownBackendsAndPassesAreRefused) {
  const ToyNetwork network = toy_networks()[0];
  const Graph graph = training_graph(network.spec, network.build).graph;
  const std::unique_ptr<Device> cpu = make_cpu_device();
  EXPECT_THROW(
      (void)plan_for(graph, {.backend = "nativ", .disabled_passes = {}, .cache = {}}, *cpu), Error);
  EXPECT_THROW(
      (void)plan_for(graph, {.backend = "native", .disabled_passes = {"fusio"}, .cache = {}}, *cpu),
      Error);
}

}  // namespace
}  // namespace ridgeline
