#include "measure/machine/environment.h"

#include <hwy/highway.h>
#include <sched.h>
#include <sqlite3.h>
#include <sys/utsname.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "backends/registry.h"
#include "base/cpuinfo.h"
#include "base/error.h"
#include "base/text_file.h"
#include "build_info.h"
#include "devices/device.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

std::string trimmed(const std::string& text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

int whole_number(const std::string& text) { return std::atoi(text.c_str()); }

void read_flags(const std::string& flags, Environment& env) {
  static constexpr std::array kWorthSaying = {
      "sse4_2",   "avx",         "f16c",        "fma",         "avx2",     "avx512f", "avx512bw",
      "avx512vl", "avx512_vnni", "avx512_bf16", "avx512_fp16", "amx_tile", "asimd",   "asimdhp",
      "asimddp",  "i8mm",        "bf16",        "sve",         "sve2"};
  std::istringstream words(flags);
  std::set<std::string> present;
  for (std::string word; words >> word;) present.insert(word);
  for (const char* name : kWorthSaying) {
    if (present.contains(name)) env.vector_extensions.emplace_back(name);
  }
}

// ARM64's /proc/cpuinfo does not tell which processors share a core or a socket.
void read_topology(int processors, std::set<std::string>& sockets,
                   std::set<std::pair<std::string, std::string>>& cores) {
  for (int i = 0; i < processors; ++i) {
    const fs::path folder = fmt::format("/sys/devices/system/cpu/cpu{}/topology", i);
    const std::string socket = first_line(folder / "physical_package_id");
    const std::string core = first_line(folder / "core_id");
    if (socket.empty() || core.empty()) continue;
    sockets.insert(socket);
    cores.insert({socket, core});
  }
}

void read_cpuinfo(Environment& env) {
  env.cpu = read_cpu_identity().name;
  std::ifstream file("/proc/cpuinfo");
  std::set<std::string> sockets;
  std::set<std::pair<std::string, std::string>> cores;
  std::string socket = "0";
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = trimmed(line.substr(0, colon));
    const std::string value = trimmed(line.substr(colon + 1));
    if (key == "processor") ++env.processors;
    if (key == "physical id") sockets.insert(socket = value);
    if (key == "core id") cores.insert({socket, value});
    if ((key == "flags" || key == "Features") && env.vector_extensions.empty()) {
      read_flags(value, env);
    }
  }
  if (cores.empty()) read_topology(env.processors, sockets, cores);
  env.sockets = static_cast<int>(sockets.size());
  env.cores = static_cast<int>(cores.size());
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) == 0) env.usable_processors = CPU_COUNT(&set);
  const std::string khz = first_line("/sys/devices/system/cpu/cpu0/cpufreq/cpuinfo_max_freq");
  env.max_mhz = std::atof(khz.c_str()) / 1000.0;
}

// "0-3,8" names five processors.
int processors_in(const std::string& list) {
  int count = 0;
  std::istringstream parts(list);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::size_t dash = part.find('-');
    count += dash == std::string::npos
                 ? 1
                 : whole_number(part.substr(dash + 1)) - whole_number(part) + 1;
  }
  return std::max(count, 1);
}

void read_caches(Environment& env) {
  for (int index = 0;; ++index) {
    const fs::path folder =
        fs::path("/sys/devices/system/cpu/cpu0/cache") / fmt::format("index{}", index);
    const std::string size = first_line(folder / "size");
    if (size.empty()) return;
    CacheInfo cache;
    cache.level = whole_number(first_line(folder / "level"));
    cache.type = first_line(folder / "type");
    std::transform(cache.type.begin(), cache.type.end(), cache.type.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    cache.bytes = std::int64_t{whole_number(size)} * (size.ends_with('M') ? 1 << 20 : 1 << 10);
    cache.shared_by = processors_in(first_line(folder / "shared_cpu_list"));
    env.caches.push_back(std::move(cache));
  }
}

void read_system(Environment& env) {
  utsname name{};
  if (uname(&name) == 0) {
    env.host = name.nodename;
    env.kernel = fmt::format("{} {} {}", name.sysname, name.release, name.machine);
  }
  std::ifstream release("/etc/os-release");
  for (std::string line; std::getline(release, line);) {
    if (!line.starts_with("PRETTY_NAME=")) continue;
    env.os = line.substr(line.find('=') + 1);
    std::erase(env.os, '"');
  }
  env.memory_bytes = std::int64_t{sysconf(_SC_PHYS_PAGES)} * sysconf(_SC_PAGESIZE);
  env.hosting = read_host();
  env.gpus = cuda_devices();
  for (std::size_t i = 0; i < env.gpus.size(); ++i) {
    env.gpu_details.push_back(gpu_details(static_cast<int>(i)));
  }
  env.no_gpu = cuda_unavailable();
  env.available_bytes = static_cast<std::int64_t>(make_cpu_device()->available_memory());
}

}  // namespace

Environment read_environment() {
  Environment env;
  read_cpuinfo(env);
  read_caches(env);
  read_system(env);
  env.version = build_info::version;
  env.revision = build_info::revision;
  env.compiler = build_info::compiler;
  env.flags = build_info::flags;
  env.build_type = build_info::build_type;
  env.libraries.emplace_back("native kernels", native_backend.version());
  if (onednn_backend.unavailable().empty()) {
    env.libraries.emplace_back("oneDNN", onednn_backend.version());
  }
  if (cudnn_backend.unavailable().empty()) {
    env.libraries.emplace_back("cuDNN", cudnn_backend.version());
  }
  env.libraries.emplace_back("SQLite", sqlite3_libversion());
  env.libraries.emplace_back("Highway", fmt::format("{}.{}.{}", HWY_MAJOR, HWY_MINOR, HWY_PATCH));
  env.libraries.emplace_back("zlib", zlibVersion());
  env.libraries.emplace_back("fmt", fmt::format("{}.{}.{}", FMT_VERSION / 10000,
                                                FMT_VERSION / 100 % 100, FMT_VERSION % 100));
  return env;
}

}  // namespace ridgeline
