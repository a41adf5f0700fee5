#pragma once

// What stands between the hardware and this program: limits, virtual machines, containers, settings
// of the system that change its speed.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace ridgeline {

// Nothing, or empty text: the system does not tell, or there is none.
struct HostState {
  std::optional<double> cpu_limit;                 // processors' worth of time that a cgroup allows
  std::optional<std::int64_t> memory_limit_bytes;  // that a cgroup allows
  std::string machine;                             // as its maker calls it (DMI)
  std::string virtualisation;                      // "virtual machine", "xen", "WSL"
  std::string container;                           // "docker", "podman", "kubernetes", "lxc"
  std::string governor;                            // of the processor's clock: "performance"
  std::optional<bool> boost;                       // clocks above the nominal one
  std::string huge_pages;                          // transparent ones: "always", "madvise", "never"
  std::string clock_source;                        // of the kernel's clock: "tsc"
  int numa_nodes = 0;
  std::string gpu_driver;  // the version of NVIDIA's kernel module
};

// From the files below `root`; tests make their own.
[[nodiscard]] HostState read_host(const std::filesystem::path& root = "/");

}  // namespace ridgeline
