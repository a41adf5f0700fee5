// Two network namespaces with a cable between them, as two machines: what ranks of one machine do
// not show. Skipped where the system does not allow namespaces, as in most containers.

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "support/program.h"
#include "support/rank_jobs.h"

namespace ridgeline {
namespace {

using testing::contains;
using testing::count_of;
using testing::Outcome;
using testing::processes_in;
namespace fs = std::filesystem;

// Runs in a namespace of its own, which is the first machine. $1: what one rank is to run.
const char* const kMachines = R"sh(set -e
hostname ranka
ip link set lo up
unshare -n -u sh -c 'hostname rankb; exec sleep 120' & second=$!
trap 'kill $second; wait $second || true' EXIT
while [ "$(nsenter -t $second -u hostname)" != rankb ];
do sleep 0.01; done
ip link add cable_a type veth peer name cable_b netns $second
ip addr add 10.77.0.1/24 dev cable_a
ip link set cable_a up
nsenter -t $second -n ip addr add 10.77.0.2/24 dev cable_b
nsenter -t $second -n ip link set cable_b up
nsenter -t $second -n ip link set lo up
printf '#!/bin/sh\nshift\nexec nsenter -t %s -n -u sh -c "$*"\n' $second > agent
chmod +x agent
export OMPI_MCA_plm_rsh_agent=$PWD/agent OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
mpirun -q --bind-to none -H 10.77.0.1:1,$HOSTS -n 2 $1
)sh";

const char* const kTraining =
    " train mnist_cnn --data synthetic:1x12x12:4:96 --image 12x12 --batch 16 --lr 0.05 --no-store "
    "--threads 1 --json --epochs 2 ";

class RankHosts : public testing::RankTest {
 protected:
  void SetUp() override {
    RankTest::SetUp();
    if (IsSkipped()) return;
    if (!joined_by_open_mpi()) GTEST_SKIP() << "the agent is Open MPI's";
    const Outcome outcome = shell(
        "unshare -n -u sh -c 'nsenter -t $$ -n true && ip link add cable_a type veth peer name "
        "cable_b'");
    if (outcome.code != 0) GTEST_SKIP() << "no network namespaces here: " << outcome.err;
  }

  [[nodiscard]] Outcome run_on(const std::string& other, const std::string& words) const {
    std::ofstream(folder_ / "machines") << kMachines;
    return shell("env HOSTS=" + other + ":1 unshare -n -u timeout 60 sh machines '" +
                 testing::program() + words + "'");
  }
};

TEST_F(RankHosts, TwoMachinesTrainAsOneDoes) {
  const Outcome here = shell(testing::program() + kTraining + "--ranks 2");
  ASSERT_EQ(here.code, 0) << here.err;
  const Outcome two = run_on("10.77.0.2", std::string(kTraining));
  ASSERT_EQ(two.code, 0) << two.err;
  const auto one_machine = nlohmann::json::parse(here.out);
  const auto machines = nlohmann::json::parse(two.out);
  EXPECT_EQ(one_machine["executor"]["nodes"], 1);
  EXPECT_EQ(machines["executor"]["nodes"], 2);
  EXPECT_NEAR(machines["final_test_loss"].get<double>(),
              one_machine["final_test_loss"].get<double>(), 1e-5);
}

TEST_F(RankHosts, BadInputIsOneLineThere) {
  const Outcome outcome = run_on("10.77.0.2", std::string(kTraining) + "--batch 15");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_EQ(count_of(outcome.err, "ridgeline: "), 1U) << outcome.err;
  EXPECT_TRUE(contains(outcome.err, "cannot be divided evenly")) << outcome.err;
  EXPECT_TRUE(processes_in(folder_).empty());
}

}  // namespace
}  // namespace ridgeline
