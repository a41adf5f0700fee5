// Which stored run `ridgeline roofline` takes.

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "lab/roofline.h"
#include "support/store_rows.h"

namespace ridgeline {
namespace {

TEST(RooflineOfStoredRuns, AFilterTakesTheNewestRunThatHasTimesOfItsSteps) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("roofline-" + std::to_string(getpid()) + ".db");
  RunId ours = 0;
  {
    Store store(path);
    ours = testing::write_example(store);
    std::vector<Ceiling> ceilings(2);
    for (Ceiling& ceiling : ceilings) {
      ceiling.device = "cpu";
      ceiling.scope = "one core";
      ceiling.value = 1e10;
    }
    ceilings[0].kind = "compute";
    ceilings[0].subject = "fp32";
    ceilings[1].kind = "bandwidth";
    ceilings[1].subject = "memory";
    store.replace_ceilings("feed", "cpu", ceilings);
    RunRecord peer = testing::example_run();
    peer.executor.backend = "torch-cpu";
    const RunId newest = store.begin(peer);
    store.add(newest, testing::example_samples(4));
    store.finish(newest, RunStatus::complete, "", {}, {});
  }
  CallListener listener;
  const StoredRooflines found =
      run_roofline({.store = path.string(), .runs = {"model=mlp"}}, listener);
  std::filesystem::remove(path);
  ASSERT_EQ(found.groups.size(), 1U);
  ASSERT_EQ(found.groups[0].runs.size(), 1U);
  EXPECT_EQ(found.groups[0].runs[0].run.id, ours);
}

}  // namespace
}  // namespace ridgeline
