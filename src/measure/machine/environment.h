#pragma once

// What this machine and this build are, for `ridgeline env` and for the record of a run.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "devices/device.h"
#include "devices/gpu_details.h"
#include "measure/machine/host.h"
#include "store/records.h"

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
  HostState hosting;
  std::vector<GpuInfo> gpus;
  std::vector<GpuDetails> gpu_details;  // of each of them
  std::string no_gpu;                   // why there are none
  std::string os, kernel;
  std::string version, revision, compiler, flags, build_type;
  std::vector<std::pair<std::string, std::string>> libraries;  // name, version
};

[[nodiscard]] Environment read_environment();

// All of it, as `ridgeline env --json` prints it.
[[nodiscard]] std::string environment_json(const Environment& environment);
// For the store. What changes from minute to minute (available memory) is left out, so that the
// same machine with the same build and the same label always has the same key.
[[nodiscard]] EnvironmentRecord environment_record(const Environment& environment,
                                                   const std::string& label);

}  // namespace ridgeline
