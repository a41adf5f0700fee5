// The fingerprint of a machine with a build.

#include "measure/machine/environment.h"

#include <gtest/gtest.h>

#include "devices/free_memory.h"
#include "support/data_files.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;

TEST(EnvironmentRecordTest, TheKeyFollowsMachineAndLabelNotTheMinute) {
  Environment environment = read_environment();
  const EnvironmentRecord first = environment_record(environment, "desk");
  environment.available_bytes += 1 << 20;
  EXPECT_EQ(environment_record(environment, "desk").key, first.key);
  EXPECT_NE(environment_record(environment, "laptop").key, first.key);
  EXPECT_EQ(first.key.size(), 16U);
  environment.hosting.governor = "powersave (other)";
  EXPECT_NE(environment_record(environment, "desk").key, first.key);
  expect_contains(first.fingerprint, {"\"cpu_limit\"", "\"virtualisation\"", "\"gpu_driver\"",
                                      "\"revision\"", "\"libraries\"", "\"SQLite\""});
  expect_contains(environment_json(environment), {"available_bytes"});
}

class HostTest : public FileTest {
 protected:
  void put(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    (void)write(name, text);
  }
};

TEST_F(HostTest, LimitsOfTheUnifiedHierarchyAreTheTightestOnTheWay) {
  put("proc/self/cgroup", "0::/a/b\n");
  put("sys/fs/cgroup/a/b/cpu.max", "max 100000\n");
  put("sys/fs/cgroup/a/cpu.max", "150000 100000\n");
  put("sys/fs/cgroup/a/b/memory.max", "1000000\n");
  put("sys/fs/cgroup/a/memory.max", "max\n");
  const HostState host = read_host(folder_);
  EXPECT_EQ(host.cpu_limit, 1.5);
  EXPECT_EQ(host.memory_limit_bytes, 1000000);
}

TEST_F(HostTest, LimitsOfTheOldHierarchiesAreRead) {
  put("proc/self/cgroup", "4:memory:/job\n2:cpu,cpuacct:/\n0::/\n");
  put("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2000000\n");
  put("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "400000\n");
  put("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  const HostState host = read_host(folder_);
  EXPECT_EQ(host.cpu_limit, 4.0);
  EXPECT_EQ(host.memory_limit_bytes, 2000000);
}

TEST_F(HostTest, VirtualMachinesContainersAndSettingsAreNamed) {
  put("proc/cpuinfo", "processor : 0\nflags : fpu sse hypervisor avx\n");
  put(".dockerenv", "");
  put("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
  put("sys/class/dmi/id/product_name", "m5.xlarge\n");
  put("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave\n");
  put("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
  put("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  put("sys/devices/system/node/node0/cpulist", "0\n");
  put("sys/devices/system/node/node1/cpulist", "1\n");
  put("proc/driver/nvidia/version",
      "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 2024\n");
  const HostState host = read_host(folder_);
  EXPECT_EQ(host.virtualisation, "virtual machine");
  EXPECT_EQ(host.container, "docker");
  EXPECT_EQ(host.machine, "Amazon EC2 m5.xlarge");
  EXPECT_EQ(host.governor, "powersave");
  EXPECT_EQ(host.boost, false);
  EXPECT_EQ(host.huge_pages, "madvise");
  EXPECT_EQ(host.numa_nodes, 2);
  EXPECT_EQ(host.gpu_driver, "550.54.15");
}

TEST_F(HostTest, WhatTheSystemDoesNotTellIsNothing) {
  const HostState host = read_host(folder_);
  EXPECT_FALSE(host.cpu_limit || host.memory_limit_bytes || host.boost);
  EXPECT_EQ(host.virtualisation + host.container + host.machine + host.governor, "");
  EXPECT_EQ(host.numa_nodes, 0);
}

TEST_F(HostTest, FreeMemoryOfNestedGroupsIsTheTightestWithoutThePageCache) {
  put("proc/self/cgroup", "0::/a/b\n");
  put("sys/fs/cgroup/a/memory.max", "1000000\n");
  put("sys/fs/cgroup/a/memory.current", "900000\n");
  put("sys/fs/cgroup/a/memory.stat",
      "anon 100000\nfile 700000\ninactive_file 500000\nactive_file 100000\n"
      "slab_reclaimable 50000\n");
  put("sys/fs/cgroup/a/b/memory.max", "max\n");
  put("sys/fs/cgroup/a/b/memory.current", "900000\n");
  EXPECT_EQ(tightest_group(folder_).left, 750000U);
  EXPECT_EQ(tightest_group(folder_).limit, 1000000U);
  put("sys/fs/cgroup/a/b/memory.max", "950000\n");
  EXPECT_EQ(tightest_group(folder_).left, 50000U) << "its own group has no file pages";
  put("proc/self/cgroup", "0::/\n");
  EXPECT_EQ(tightest_group(folder_).left, kNoLimit);
}

}  // namespace
}  // namespace ridgeline
