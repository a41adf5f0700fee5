#include "base/cpuinfo.h"

#include <gtest/gtest.h>

#include <sstream>

namespace ridgeline {
namespace {

CpuIdentity identity_in(const std::string& text) {
  std::istringstream stream(text);
  return read_cpu_identity(stream);
}

TEST(CpuInfo, X86TellsItsName) {
  const CpuIdentity cpu = identity_in(
      "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 106\n"
      "model name\t: Intel(R) Xeon(R) Platinum 8375C\nflags\t\t: fpu\n\nprocessor\t: 1\n");
  EXPECT_EQ(cpu.name, "Intel(R) Xeon(R) Platinum 8375C");
  EXPECT_EQ(cpu.vendor, "GenuineIntel");
  EXPECT_EQ(cpu.family, 6);
  EXPECT_EQ(cpu.model, 106);
}

TEST(CpuInfo, CoresOfArmAreNamedByTheirNumbers) {
  const auto core = [](const std::string& maker, const std::string& part) {
    return "processor\t: 0\nFeatures\t: fp asimd\nCPU implementer\t: " + maker +
           "\nCPU architecture: 8\nCPU variant\t: 0x1\nCPU part\t: " + part + "\n\n";
  };
  const std::string v1 = core("0x41", "0xd40");
  EXPECT_EQ(identity_in(v1 + v1).name, "Arm Neoverse-V1");
  EXPECT_EQ(identity_in(v1).vendor, "Arm");
  EXPECT_EQ(identity_in(core("0x61", "0x022") + core("0x61", "0x023")).name,
            "Apple M1 Icestorm, Apple M1 Firestorm");
  EXPECT_EQ(identity_in(core("0x41", "0xfff")).name, "Arm, core 0xfff");
  EXPECT_EQ(identity_in(core("0x99", "0x001")).name, "ARM64, maker 0x99, core 0x001");
}

TEST(CpuInfo, NothingIsMadeUp) {
  EXPECT_EQ(identity_in("").name, "");
  EXPECT_EQ(identity_in(":\n: x\nmodel name\nCPU part\t:\n").name, "");
}

}  // namespace
}  // namespace ridgeline
