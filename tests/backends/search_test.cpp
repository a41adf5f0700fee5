// How `auto` searches, with providers on the CPU that stand for those of a GPU.

#include "backends/search.h"

#include <gtest/gtest.h>

#include "backends/registry.h"
#include "support/op_cases.h"
#include "support/window.h"

namespace ridgeline {
namespace {

std::vector<NodeId> match_convolution(const Graph& graph, NodeId first) {
  return match_one<OpKind::conv2d>(graph, first);
}

const KernelRow& fast_row() {
  for (const KernelRow& row : native_backend.rows()) {
    if (row.name == "conv2d") return row;
  }
  throw std::logic_error("native has no row conv2d");
}

int asked = 0;  // times that a kernel was made, which is when such a provider measures

// Much faster than the reference, and for convolutions alone.
std::span<const KernelRow> measuring_rows() {
  static const KernelRow row = {"conv2d", match_convolution, fast_row().check,
                                [](const Problem& problem, std::span<const Layout> layouts) {
                                  ++asked;
                                  return fast_row().make(problem, layouts);
                                }};
  return {&row, 1};
}

Backend measuring() {
  Backend backend = native_backend;
  backend.name = "measuring";
  backend.rows = measuring_rows;
  backend.measures = true;
  return backend;
}

Graph network() {
  testing::CaseBuilder builder("search");
  ValueId value = builder.input({4, 16, 32, 32});
  for (int layer = 0; layer < 2; ++layer) {
    const ValueId weights = builder.parameter({16, 16, 3, 3});
    value = builder.node(OpKind::conv2d, {value, weights}, testing::kernel(3, 3).pad(1));
    value = builder.node(OpKind::activation, {value}, ActivationAttributes{});
  }
  return builder.done().graph;
}

struct Found {
  Preference preference = {};
  Graph graph = {};
  int asked = 0;
  std::vector<double> progress = {};
};

Found search_with(SearchLimits limits) {
  static const Backend kMeasuring = measuring();
  Found found{.preference = {}, .graph = network()};
  PlanOptions options;
  options.providers = {&reference_backend, &kMeasuring};
  limits.progress = [&](double share) { found.progress.push_back(share); };
  const std::unique_ptr<Device> device = make_cpu_device();
  asked = 0;
  found.preference = search(found.graph, options, *device, limits);
  found.asked = asked;
  return found;
}

TEST(Search, AsksAMeasuringProviderForWhatItMayGainOn) {
  const Found found = search_with({});
  EXPECT_GT(found.asked, 0);
  for (std::size_t id = 0; id < found.preference.size(); ++id) {
    const bool convolution = found.graph.nodes()[id].kind == OpKind::conv2d;
    EXPECT_EQ(found.preference[id].backend->name, convolution ? "measuring" : "reference") << id;
  }
  ASSERT_FALSE(found.progress.empty());
  EXPECT_EQ(found.progress.back(), 1.0);
}

TEST(Search, DoesNotAskWhenTimeIsUp) {
  const Found found = search_with({.seconds = 0.0});
  EXPECT_EQ(found.asked, 0);
  for (const Choice& choice : found.preference) EXPECT_EQ(choice.backend, &reference_backend);
}

TEST(Search, DoesNotAskForWhatCostsMoreThanItGains) {
  const Found found = search_with({.runs = 1});
  EXPECT_EQ(found.asked, 0);
  for (const Choice& choice : found.preference) EXPECT_EQ(choice.backend, &reference_backend);
}

}  // namespace
}  // namespace ridgeline
