#include "measure/machine/host.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/folder.h"
#include "base/text_file.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

std::string whole_file(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

std::optional<double> number(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return end == text.c_str() ? std::nullopt : std::optional(value);
}

// The group of a controller and all above it. A container often sees its own group as the root,
// so that the path told is not there: then the root itself is all there is to ask.
std::vector<fs::path> groups(const fs::path& mount, const std::string& path) {
  std::vector<fs::path> list;
  // Never with a slash at the end: libstdc++ 12 damages memory when it gets none while it appends
  // to such a path.
  const fs::path below = fs::path(path).relative_path();
  fs::path group = below.empty() ? mount : mount / below;
  for (; group != mount && group.has_relative_path(); group = group.parent_path()) {
    std::error_code ignored;
    if (fs::is_directory(group, ignored)) list.push_back(group);
  }
  list.push_back(mount);
  return list;
}

template <typename Number>
void lower(std::optional<Number>& limit, double value) {
  const auto found = static_cast<Number>(value);
  if (!limit || found < *limit) limit = found;
}

void read_unified(const fs::path& mount, const std::string& path, HostState& host) {
  for (const fs::path& group : groups(mount, path)) {
    std::istringstream cpu(first_line(group / "cpu.max"));  // "max 100000" or "200000 100000"
    double quota = 0.0, period = 0.0;
    if (cpu >> quota >> period && period > 0.0) lower(host.cpu_limit, quota / period);
    const std::string memory = first_line(group / "memory.max");
    if (const auto bytes = number(memory); bytes && memory != "max") {
      lower(host.memory_limit_bytes, *bytes);
    }
  }
}

void read_controller(const fs::path& mount, const std::string& controller, const std::string& path,
                     HostState& host) {
  constexpr double kNoLimit = 1e18;  // version 1 writes a number that no machine has
  for (const fs::path& group : groups(mount / controller, path)) {
    if (controller == "cpu") {
      const auto quota = number(first_line(group / "cpu.cfs_quota_us"));
      const auto period = number(first_line(group / "cpu.cfs_period_us"));
      if (quota && period && *quota > 0.0 && *period > 0.0) {
        lower(host.cpu_limit, *quota / *period);
      }
    } else {
      const auto bytes = number(first_line(group / "memory.limit_in_bytes"));
      if (bytes && *bytes < kNoLimit) lower(host.memory_limit_bytes, *bytes);
    }
  }
}

void read_limits(const fs::path& root, HostState& host) {
  const fs::path mount = root / "sys/fs/cgroup";
  std::ifstream file(root / "proc/self/cgroup");
  // "0::/path" (version 2) or "4:memory:/path", "2:cpu,cpuacct:/path" (version 1)
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    std::istringstream names(line.substr(first + 1, second - first - 1));
    const std::string path = line.substr(second + 1);
    if (first + 1 == second) read_unified(mount, path, host);
    for (std::string name; std::getline(names, name, ',');) {
      if (name == "cpu" || name == "memory") read_controller(mount, name, path, host);
    }
  }
}

std::string container_of(const fs::path& root) {
  std::error_code ignored;
  const bool here = root == "/";
  if (here && std::getenv("KUBERNETES_SERVICE_HOST") != nullptr) return "kubernetes";
  if (fs::exists(root / ".dockerenv", ignored)) return "docker";
  if (fs::exists(root / "run/.containerenv", ignored)) return "podman";
  const std::string groups = whole_file(root / "proc/self/cgroup");
  static constexpr std::array<std::pair<const char*, const char*>, 4> kSigns = {
      {{"kubepods", "kubernetes"}, {"docker", "docker"}, {"libpod", "podman"}, {"/lxc", "lxc"}}};
  for (const auto& [sign, name] : kSigns) {
    if (contains(groups, sign)) return name;
  }
  return contains(whole_file(root / "proc/1/environ"), "container=") ? "container" : "";
}

std::string virtualisation_of(const fs::path& root) {
  if (const std::string type = first_line(root / "sys/hypervisor/type"); !type.empty()) return type;
  if (contains(first_line(root / "proc/sys/kernel/osrelease"), "icrosoft")) return "WSL";
  std::ifstream file(root / "proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with("flags")) continue;
    return contains(line + " ", " hypervisor ") ? "virtual machine" : "";
  }
  return {};
}

std::optional<bool> boost_of(const fs::path& cpus) {
  const std::string boost = first_line(cpus / "cpufreq/boost");
  if (!boost.empty()) return boost == "1";
  const std::string off = first_line(cpus / "intel_pstate/no_turbo");
  if (!off.empty()) return off == "0";
  return std::nullopt;
}

// "always [madvise] never"
std::string chosen(const std::string& choices) {
  const std::size_t begin = choices.find('['), end = choices.find(']');
  if (begin == std::string::npos || end == std::string::npos) return {};
  return choices.substr(begin + 1, end - begin - 1);
}

int count_nodes(const fs::path& folder) {
  int count = 0;
  std::error_code error;
  for (const std::string& name : names_in(folder, error)) {
    if (name.size() > 4 && name.starts_with("node") && name[4] >= '0' && name[4] <= '9') ++count;
  }
  return count;
}

// "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar …"
std::string gpu_driver_of(const fs::path& root) {
  std::istringstream words(first_line(root / "proc/driver/nvidia/version"));
  for (std::string word; words >> word;) {
    if (word.front() >= '0' && word.front() <= '9' && contains(word, ".")) return word;
  }
  return {};
}

}  // namespace

HostState read_host(const fs::path& root) {
  HostState host;
  read_limits(root, host);
  const fs::path dmi = root / "sys/class/dmi/id";
  const std::string maker = first_line(dmi / "sys_vendor"),
                    product = first_line(dmi / "product_name");
  host.machine = maker + (maker.empty() || product.empty() ? "" : " ") + product;
  host.virtualisation = virtualisation_of(root);
  host.container = container_of(root);
  const fs::path cpus = root / "sys/devices/system/cpu";
  host.governor = first_line(cpus / "cpu0/cpufreq/scaling_governor");
  host.boost = boost_of(cpus);
  host.huge_pages = chosen(first_line(root / "sys/kernel/mm/transparent_hugepage/enabled"));
  host.clock_source =
      first_line(root / "sys/devices/system/clocksource/clocksource0/current_clocksource");
  host.numa_nodes = count_nodes(root / "sys/devices/system/node");
  host.gpu_driver = gpu_driver_of(root);
  return host;
}

}  // namespace ridgeline
