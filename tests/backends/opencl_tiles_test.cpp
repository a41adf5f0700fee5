// The tiles of opencl's convolutions that a CPU would not choose, and what happens where a device
// cannot run them.

#include <gtest/gtest.h>

#include <algorithm>

#include "backends/auto.h"
#include "backends/opencl/conv/conv_choice.h"
#include "backends/registry.h"
#include "devices/opencl.h"
#include "support/op_runner.h"

namespace ridgeline::testing {
namespace {

using opencl::conv::Tile;

class OpenClTiles : public ::testing::TestWithParam<Tile> {
 protected:
  void SetUp() override {
    if (const std::string reason = opencl_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  }
  void TearDown() override { opencl::conv::offer_tiles({}); }
};

bool has_tiles(const OpCase& op_case) {
  const OpKind kind = op_case.graph.nodes()[0].kind;
  return !op_case.big && (kind == OpKind::conv2d || kind == OpKind::conv2d_backward_data ||
                          kind == OpKind::conv2d_backward_weights || kind == OpKind::linear ||
                          kind == OpKind::linear_backward_weights);
}

// Every fourth: a driver compiles some of its kernels for each size of a work-group.
TEST_P(OpenClTiles, CasesMatchTheReference) {
  opencl::conv::offer_tiles({GetParam()});
  int compared = 0, seen = 0;
  for (const OpCase& op_case : op_cases()) {
    if (!has_tiles(op_case) || seen++ % 4 != 0) continue;
    const CheckResult result = check_case(opencl_backend, op_case, Effort::quick);
    for (const std::string& failure : result.failures) {
      ADD_FAILURE() << op_case.name << ": " << failure;
    }
    compared += result.refusal.empty() ? 1 : 0;
  }
  EXPECT_GT(compared, 12);
}

INSTANTIATE_TEST_SUITE_P(All, OpenClTiles,
                         ::testing::Values(Tile{.local = true, .rows = 64, .vectors = 4},
                                           Tile{.local = true, .rows = 32, .vectors = 2},
                                           Tile{.local = false, .rows = 4, .vectors = 1}),
                         [](const auto& p) {
                           return fmt::format("{}{}x{}", p.param.local ? "local" : "registers",
                                              p.param.rows, p.param.width());
                         });

// The rows that computed a convolution, and what is told of those that did not.
std::string explained(const Tile& tile) {
  opencl::conv::offer_tiles({tile});
  const auto device = make_device("opencl:0");
  const auto found = std::find_if(op_cases().begin(), op_cases().end(), [](const OpCase& op_case) {
    return op_case.graph.nodes()[0].kind == OpKind::conv2d && has_tiles(op_case);
  });
  PlanRequest request;
  request.backend = "opencl";
  return plan_for(found->graph, request, *device).text(true);
}

TEST(OpenClPlainTiles, StandInWhereAKernelDoesNotCompile) {
  if (const std::string reason = opencl_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  // Arrays of a negative size.
  const std::string text = explained({.local = true, .rows = -16, .vectors = 1});
  opencl::conv::offer_tiles({});
  EXPECT_NE(text.find("conv2d_plain"), std::string::npos) << text;
  EXPECT_NE(text.find("conv_gather_tile.cl does not compile on"), std::string::npos) << text;
  EXPECT_NE(text.find("error:"), std::string::npos) << text;
}

TEST(OpenClPlainTiles, StandInWhereLocalMemoryIsTooSmall) {
  if (const std::string reason = opencl_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
  const std::string text = explained({.local = true, .rows = 1 << 20, .vectors = 4});
  opencl::conv::offer_tiles({});
  EXPECT_NE(text.find("conv2d_plain"), std::string::npos) << text;
  EXPECT_NE(text.find("bytes of local memory"), std::string::npos) << text;
}

}  // namespace
}  // namespace ridgeline::testing
