#include "base/cpuinfo.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <vector>

namespace ridgeline {
namespace {

struct Maker {
  int number;
  const char* name;
};
struct Core {
  int maker, part;
  const char* name;
};

// As in Linux's arch/arm64/include/asm/cputype.h.
constexpr std::array kMakers = {Maker{0x41, "Arm"},     Maker{0x43, "Cavium"},
                                Maker{0x46, "Fujitsu"}, Maker{0x48, "HiSilicon"},
                                Maker{0x4e, "NVIDIA"},  Maker{0x51, "Qualcomm"},
                                Maker{0x61, "Apple"},   Maker{0xc0, "Ampere"}};
constexpr std::array kCores = {Core{0x41, 0xd03, "Cortex-A53"},  Core{0x41, 0xd05, "Cortex-A55"},
                               Core{0x41, 0xd07, "Cortex-A57"},  Core{0x41, 0xd08, "Cortex-A72"},
                               Core{0x41, 0xd0b, "Cortex-A76"},  Core{0x41, 0xd41, "Cortex-A78"},
                               Core{0x41, 0xd0c, "Neoverse-N1"}, Core{0x41, 0xd40, "Neoverse-V1"},
                               Core{0x41, 0xd49, "Neoverse-N2"}, Core{0x41, 0xd4f, "Neoverse-V2"},
                               Core{0x41, 0xd84, "Neoverse-V3"}, Core{0x41, 0xd8e, "Neoverse-N3"},
                               Core{0x43, 0x0af, "ThunderX2"},   Core{0x46, 0x001, "A64FX"},
                               Core{0x48, 0xd01, "TSV110"},      Core{0x4e, 0x004, "Carmel"},
                               Core{0x61, 0x022, "M1 Icestorm"}, Core{0x61, 0x023, "M1 Firestorm"},
                               Core{0x61, 0x032, "M2 Blizzard"}, Core{0x61, 0x033, "M2 Avalanche"},
                               Core{0xc0, 0xac3, "Ampere-1"},    Core{0xc0, 0xac4, "Ampere-1A"}};

std::string maker_name(int number) {
  for (const Maker& maker : kMakers) {
    if (maker.number == number) return maker.name;
  }
  return fmt::format("ARM64, maker {:#04x}", number);
}

std::string core_name(int maker, int part) {
  for (const Core& core : kCores) {
    if (core.maker == maker && core.part == part) {
      return fmt::format("{} {}", maker_name(maker), core.name);
    }
  }
  return fmt::format("{}, core {:#05x}", maker_name(maker), part);
}

int number_in(const std::string& text) {
  return static_cast<int>(std::strtol(text.c_str(), nullptr, 0));
}

}  // namespace

CpuIdentity read_cpu_identity(std::istream& cpuinfo) {
  CpuIdentity identity;
  int maker = 0;
  std::vector<std::string> cores;  // a machine may have large and small ones
  for (std::string line; std::getline(cpuinfo, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos || colon == 0 || colon + 2 > line.size()) continue;
    const std::string key = line.substr(0, line.find_last_not_of(" \t", colon - 1) + 1);
    const std::string value = line.substr(colon + 2);
    if (key == "model name" && identity.name.empty()) identity.name = value;
    if (key == "vendor_id") identity.vendor = value;
    if (key == "cpu family") identity.family = number_in(value);
    if (key == "model") identity.model = number_in(value);
    if (key == "CPU implementer") maker = number_in(value);
    if (key == "CPU part") {
      const std::string name = core_name(maker, number_in(value));
      if (std::find(cores.begin(), cores.end(), name) == cores.end()) cores.push_back(name);
    }
  }
  if (maker != 0 && identity.vendor.empty()) identity.vendor = maker_name(maker);
  if (identity.name.empty()) identity.name = fmt::format("{}", fmt::join(cores, ", "));
  return identity;
}

CpuIdentity read_cpu_identity() {
  std::ifstream file("/proc/cpuinfo");
  return read_cpu_identity(file);
}

}  // namespace ridgeline
