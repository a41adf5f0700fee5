#pragma once

// What /proc/cpuinfo says a processor is. x86 tells a name; ARM64 tells numbers of the maker and of
// the core's design, for which the usual ones are named here.

#include <iosfwd>
#include <string>

namespace ridgeline {

// 0 or empty where the processor does not say it.
struct CpuIdentity {
  std::string name;  // "Intel(R) Xeon(R) Platinum 8375C", "Arm Neoverse-V1"
  std::string vendor;
  int family = 0, model = 0;
};

[[nodiscard]] CpuIdentity read_cpu_identity(std::istream& cpuinfo);
[[nodiscard]] CpuIdentity read_cpu_identity();  // of this machine

}  // namespace ridgeline
