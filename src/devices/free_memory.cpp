#include "devices/free_memory.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <string>

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

// A number after a key in a file such as /proc/meminfo, in the file's unit, or its first number
// where the key is empty. kNoLimit if there is none, and for "max".
std::size_t number_after(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string word; file >> word;) {
    if (!key.empty() && (word != key || !(file >> word))) continue;
    std::size_t number = 0;
    const char* const end = word.data() + word.size();
    return std::from_chars(word.data(), end, number).ptr == end ? number : kNoLimit;
  }
  return kNoLimit;
}

std::size_t free_in_system() {
  const std::size_t kib = number_after("/proc/meminfo", "MemAvailable:");
  return kib == kNoLimit ? kNoLimit : kib * 1024;
}

std::size_t free_in_address_space() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return kNoLimit;
  const std::size_t pages = number_after("/proc/self/statm", "");
  const std::size_t used =
      pages == kNoLimit ? 0 : pages * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return limit.rlim_cur > used ? limit.rlim_cur - used : 0;
}

GroupMemory group_memory(const fs::path& folder) {
  const std::size_t limit = number_after(folder / "memory.max", "");
  std::size_t used = number_after(folder / "memory.current", "");
  if (limit == kNoLimit || used == kNoLimit) return {};
  for (const char* cache : {"inactive_file", "active_file", "slab_reclaimable"}) {
    const std::size_t bytes = number_after(folder / "memory.stat", cache);
    if (bytes != kNoLimit) used -= std::min(used, bytes);
  }
  return {limit, limit > used ? limit - used : 0};
}

// "/user.slice/job" of the line "0::/user.slice/job" of /proc/self/cgroup.
fs::path own_group(const fs::path& root) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("0::")) return line.substr(3);
  }
  return {};
}

}  // namespace

GroupMemory tightest_group(const fs::path& root) {
  fs::path folder = root / "sys/fs/cgroup";
  GroupMemory tightest = group_memory(folder);
  for (const fs::path& name : own_group(root).relative_path()) {
    folder /= name;
    const GroupMemory inner = group_memory(folder);
    if (inner.left < tightest.left) tightest = inner;
  }
  return tightest;
}

std::size_t free_host_memory() {
  return std::min({free_in_system(), tightest_group("/").left, free_in_address_space()});
}

}  // namespace ridgeline
