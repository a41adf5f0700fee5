// Every backend against the reference in double, over the one case list.

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <iostream>
#include <optional>
#include <set>

#include "backends/opencl/conv/conv_choice.h"
#include "backends/registry.h"
#include "base/bf16_unit.h"
#include "devices/device.h"
#include "devices/opencl.h"
#include "support/case_names.h"
#include "support/op_runner.h"
#include "support/worst_difference.h"

namespace ridgeline::testing {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

struct Param {
  const Backend* backend;
  const OpCase* op_case;
  Precision precision = Precision::fp32;
  Bf16Unit unit = Bf16Unit::amx;  // the best that may be used
};

// Other ops do not depend on the unit that multiplies bf16.
bool is_product(const OpCase& op_case) {
  return op_case.name.find("conv") != std::string::npos ||
         op_case.name.find("linear") != std::string::npos;
}

// The CPU computes in fp32 and, on each of its units, in bf16; CUDA in all precisions, OpenCL in
// fp32 and fp16.
std::vector<Param> params(std::string_view device) {
  std::vector<Param> list;
  for (const Backend* backend : all_backends()) {
    if (backend->device != device) continue;
    for (const OpCase& op_case : op_cases()) {
      list.push_back({backend, &op_case});
      if (backend == &native_backend) {
        list.push_back({backend, &op_case, Precision::bf16, Bf16Unit::amx});
        if (is_product(op_case)) {
          list.push_back({backend, &op_case, Precision::bf16, Bf16Unit::avx512});
        }
      }
      if (device == "opencl") list.push_back({backend, &op_case, Precision::fp16});
      if (device != "cuda") continue;
      for (const Precision precision : {Precision::tf32, Precision::bf16, Precision::fp16}) {
        list.push_back({backend, &op_case, precision});
      }
    }
  }
  return list;
}

std::string name_of_param(const Param& param) {
  std::string name = test_name(std::string(param.backend->name) + "_" + param.op_case->name);
  const bool cpu = param.backend->device == "cpu";
  if (!cpu) name += "_" + std::string(name_of(param.precision));
  if (cpu && param.precision == Precision::bf16)
    name += "_" + test_name(std::string(name_of(param.unit)));
  return name;
}

// Oclgrind interprets every instruction (scripts/oclgrind).
bool too_big_for_a_simulator(const Backend& backend, const OpCase& op_case) {
  if (&backend != &opencl_backend) return false;
  static const bool simulated = opencl_devices()[0].name.starts_with("Oclgrind");
  constexpr std::int64_t kMost = 8192;
  std::int64_t elements = 0;
  for (const Value& value : op_case.graph.values()) elements += value.spec.shape.elements();
  return simulated && elements > kMost;
}

// GoogleTest prints a parameter with every failure.
void PrintTo(const Param& param, std::ostream* out) { *out << name_of_param(param); }

class OpBackend : public ::testing::TestWithParam<Param> {
 protected:
  void SetUp() override { limit_bf16_unit(GetParam().unit); }
  void TearDown() override { limit_bf16_unit(Bf16Unit::amx); }
};

TEST_P(OpBackend, MatchesReference) {
  const auto& [backend, given, precision, unit] = GetParam();
  const std::string unavailable = backend->unavailable();
  if (!unavailable.empty()) GTEST_SKIP() << unavailable;
  std::optional<OpCase> narrow;
  const OpCase* op_case = given;
  if (precision != Precision::fp32) {
    const std::string refusal = make_device(std::string(backend->device))->refuse(precision);
    if (!refusal.empty()) GTEST_SKIP() << refusal;
    if (backend->device == "cpu" && bf16_unit() != unit && is_product(*given)) {
      GTEST_SKIP() << "this processor has no " << name_of(unit);
    }
    narrow = in_precision(*given, precision);
    if (!narrow) GTEST_SKIP() << "its answer hangs on roundings";
    op_case = &*narrow;
  }
  const bool slow = kSanitized || backend == &reference_backend;
  if (slow && op_case->big) GTEST_SKIP() << "too big for the reference or a sanitizer";
  if (too_big_for_a_simulator(*backend, *op_case)) GTEST_SKIP() << "too big for a simulator";
  const CheckResult result = check_case(*backend, *op_case, Effort::thorough);
  if (!result.refusal.empty()) GTEST_SKIP() << result.refusal;
  for (const std::string& failure : result.failures) ADD_FAILURE() << failure;
  if (HasFailure()) {
    std::vector<NodeId> nodes;
    for (std::size_t id = 0; id < op_case->graph.nodes().size(); ++id) {
      nodes.push_back(static_cast<NodeId>(id));
    }
    std::cout << "problem: " << make_problem(op_case->graph, nodes).text() << "\n"
              << "rows: " << backend->name << ": " << result.rows << "\n"
              << "repro: ./test Ops/OpBackend.MatchesReference/" << name_of_param(GetParam())
              << "\n"
              << "repro: tools/op_bench --backend " << backend->name << " --case " << op_case->name
              << "\n";
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, OpBackend, ::testing::ValuesIn(params("cpu")),
                         [](const auto& p) { return name_of_param(p.param); });

// Without a GPU one test says so instead of thousands.
INSTANTIATE_TEST_SUITE_P(GpuOps, OpBackend,
                         ::testing::ValuesIn(cuda_unavailable().empty() ? params("cuda")
                                                                        : std::vector<Param>()),
                         [](const auto& p) { return name_of_param(p.param); });
INSTANTIATE_TEST_SUITE_P(OpenClOps, OpBackend,
                         ::testing::ValuesIn(opencl_unavailable().empty() ? params("opencl")
                                                                          : std::vector<Param>()),
                         [](const auto& p) { return name_of_param(p.param); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(OpBackend);

TEST(GpuOps, AreTestedWhereThereIsAGpu) {
  if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  EXPECT_FALSE(params("cuda").empty());
}

TEST(OpCases, EveryOpKindHasCasesOfItsOwn) {
  std::vector<int> alone(kOpKinds);
  for (const OpCase& op_case : op_cases()) {
    if (op_case.graph.nodes().size() == 1) {
      ++alone[static_cast<std::size_t>(op_case.graph.nodes()[0].kind)];
    }
  }
  for (int kind = 0; kind < kOpKinds; ++kind) {
    EXPECT_GE(alone[static_cast<std::size_t>(kind)], 4) << name_of(static_cast<OpKind>(kind));
  }
}

TEST(OpCases, NamesAreUniqueAndBeginWithTheOp) {
  std::set<std::string> names;
  for (const OpCase& op_case : op_cases()) {
    EXPECT_TRUE(names.insert(op_case.name).second) << op_case.name;
    const bool single = op_case.graph.nodes().size() == 1;
    const std::string family =
        single ? std::string(name_of(op_case.graph.nodes()[0].kind)) : std::string("pattern");
    EXPECT_TRUE(op_case.name.starts_with(family + ".")) << op_case.name;
  }
}

void add_matching(const Backend& backend, const Graph& graph, std::set<const KernelRow*>& rows) {
  for (const KernelRow& row : backend.rows()) {
    for (std::size_t node = 0; node < graph.nodes().size(); ++node) {
      if (!row.match(graph, static_cast<NodeId>(node)).empty()) rows.insert(&row);
    }
  }
}

// A row that refuses everything, or that others always go before, would run nowhere without a
// word. A GPU's rows cannot be asked without one; their patterns can.
TEST(OpCases, EveryRowOfEveryBackendIsChosenByACase) {
  for (const Backend* backend : all_backends()) {
    const bool usable = backend->unavailable().empty();
    std::set<const KernelRow*> chosen;
    const auto choose = [&](const Graph& graph) {
      for (const Tile& each : tile(*backend, graph).tiles) chosen.insert(each.row);
    };
    for (const OpCase& op_case : op_cases()) {
      if (usable) {
        choose(op_case.graph);
        continue;
      }
      add_matching(*backend, op_case.graph, chosen);
      // Casts are there in narrow precisions alone.
      const std::optional<OpCase> narrow = in_precision(op_case, Precision::bf16);
      if (narrow) add_matching(*backend, narrow->graph, chosen);
    }
    if (usable && backend == &opencl_backend) {
      for (const OpCase& op_case : op_cases()) {
        if (const auto narrow = in_precision(op_case, Precision::fp16)) choose(narrow->graph);
      }
      // Its plain rows stand in where no tile fits into a device's local memory.
      opencl::conv::offer_tiles({{.local = true, .rows = 1 << 20, .vectors = 4}});
      for (const OpCase& op_case : op_cases()) choose(op_case.graph);
      opencl::conv::offer_tiles({});
    }
    for (const KernelRow& row : backend->rows()) {
      EXPECT_TRUE(chosen.contains(&row)) << backend->name << ": " << row.name;
    }
  }
}

TEST(Comparison, NoNanPasses) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::vector<double> good = {1.0, 2.0, 3.0};
  EXPECT_EQ(worst_difference(good, good), 0.0);
  EXPECT_EQ(worst_difference(good, std::vector<float>{1.0F, 2.0F, 5.0F}), 2.0);
  for (std::size_t at = 0; at < good.size(); ++at) {
    std::vector<double> bad = good;
    bad[at] = nan;
    EXPECT_FALSE(worst_difference(bad, good) < 1e9) << at;
    EXPECT_FALSE(worst_difference(good, bad) < 1e9) << at;
  }
  EXPECT_FALSE(worst_difference(good, std::vector<double>{1.0}) < 1e9);
}

// The comparison itself must be able to fail.
TEST(OpRunner, FindsEachKindOfMistake) {
  static constexpr auto kMistakes = std::to_array<void (*)(const KernelArgs&)>({
      [](const KernelArgs& args) { args.outputs[0].as<float>()[3] *= 1.0001F; },
      [](const KernelArgs& args) {
        args.outputs[0].as<float>()[args.outputs[0].shape().elements()] = 0;
      },
      [](const KernelArgs& args) { args.outputs[0].as<float>()[-1] = 0; },
      [](const KernelArgs& args) { args.inputs[1].as<float>()[0] += 1.0F; },
      [](const KernelArgs& args) { args.workspace[64] = std::byte{1}; },
      [](const KernelArgs& args) {
        args.outputs[0].as<float>()[0] = *reinterpret_cast<const float*>(args.workspace);
      },
      [](const KernelArgs& args) {
        const Tensor& dst = args.outputs[0];
        if (!dst.dense()) dst.as<float>()[dst.shape().elements() / dst.shape()[0]] = 0;
      },
  });
  static std::size_t mistake = 0;

  class Wrong final : public Kernel {
   public:
    explicit Wrong(const Problem& problem) : node_(problem.node()) {
      input_layouts.assign(2, Layout::plain());
      output_layouts.assign(1, Layout::plain());
      workspace_bytes = 64;
      traits.slices = true;
    }
    void run(const KernelArgs& args) const override {
      op_def(node_.kind).reference({node_.attributes, args.inputs, args.outputs, *args.state});
      if (mistake < kMistakes.size()) kMistakes[mistake](args);
    }

   private:
    Node node_;
  };
  static constexpr KernelRow kRow = {
      .name = "wrong",
      .match = match_one<OpKind::add>,
      .check = [](const Problem&) { return std::string(); },
      .make = [](const Problem& problem, std::span<const Layout>) -> std::unique_ptr<Kernel> {
        return std::make_unique<Wrong>(problem);
      }};
  const Backend backend = {.name = "wrong",
                           .device = "cpu",
                           .unavailable = [] { return std::string(); },
                           .version = [] { return std::string("1"); },
                           .rows = [] { return std::span<const KernelRow>(&kRow, 1); },
                           .make_reorder = nullptr};
  const auto add = std::find_if(op_cases().begin(), op_cases().end(),
                                [](const OpCase& c) { return c.name == "add.image"; });
  ASSERT_NE(add, op_cases().end());
  if (kSanitized) GTEST_SKIP() << "the sanitizer stops at the mistakes made here";
  for (mistake = 0; mistake < kMistakes.size(); ++mistake) {
    EXPECT_FALSE(check_case(backend, *add, Effort::thorough).failures.empty())
        << "mistake " << mistake;
  }
  const CheckResult right = check_case(backend, *add, Effort::thorough);
  EXPECT_TRUE(right.failures.empty()) << right.failures[0];
}

}  // namespace
}  // namespace ridgeline::testing
