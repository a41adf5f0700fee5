#pragma once

// What this machine and this build are, for `ridgeline env` and for the record of a run.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "devices/device.h"

namespace ridgeline {

struct CacheInfo {
  int level = 0;
  std::string type;  // "data", "instruction", "unified"
  std::int64_t bytes = 0;
  int shared_by = 1;  // logical processors that share one
};

// Empty text, 0 or an empty list: the system does not tell.
struct Environment {
  std::string host;
  std::string cpu;
  int sockets = 0, cores = 0, processors = 0;  // physical cores and logical processors
  int usable_processors = 0;                   // that this process may run on
  double max_mhz = 0.0;
  std::vector<std::string> vector_extensions;  // "avx2", "avx512f"
  std::vector<CacheInfo> caches;
  std::int64_t memory_bytes = 0, available_bytes = 0;
  std::vector<GpuInfo> gpus;
  std::string no_gpu;  // why there are none
  std::string os, kernel;
  std::string version, revision, compiler, flags, build_type;
  std::vector<std::pair<std::string, std::string>> libraries;  // name, version
};

[[nodiscard]] Environment read_environment();

}  // namespace ridgeline
