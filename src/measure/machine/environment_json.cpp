#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/hash.h"
#include "base/json_text.h"
#include "base/text.h"
#include "measure/machine/environment.h"

namespace ridgeline {
namespace {

using Json = nlohmann::ordered_json;

Json number_or_null(double number) { return number > 0.0 ? Json(number) : Json(nullptr); }

Json cpu_json(const Environment& env) {
  Json caches = Json::array();
  for (const CacheInfo& cache : env.caches) {
    caches.push_back({{"level", cache.level},
                      {"type", cache.type},
                      {"bytes", cache.bytes},
                      {"shared_by", cache.shared_by}});
  }
  return {{"model", env.cpu},
          {"sockets", env.sockets},
          {"cores", env.cores},
          {"processors", env.processors},
          {"usable_processors", env.usable_processors},
          {"numa_nodes", number_or_null(env.hosting.numa_nodes)},
          {"max_mhz", number_or_null(env.max_mhz)},
          {"governor", text_or_null(env.hosting.governor)},
          {"boost", or_null(env.hosting.boost)},
          {"vector_extensions", env.vector_extensions},
          {"caches", std::move(caches)}};
}

Json gpu_json(const GpuInfo& gpu, const GpuDetails& details) {
  return {{"name", gpu.name},
          {"compute_capability", gpu.capability},
          {"multiprocessors", gpu.multiprocessors},
          {"max_mhz", number_or_null(gpu.clock_mhz)},
          {"max_memory_mhz", or_null(details.memory_mhz)},
          {"memory_bus_bits", or_null(details.memory_bus_bits)},
          {"memory_bytes", gpu.memory_bytes},
          {"l2_bytes", gpu.l2_bytes},
          {"ecc", or_null(details.ecc)},
          {"cuda_driver", gpu.cuda_driver}};
}

// What stays as it is from one minute to the next.
Json lasting(const Environment& env) {
  Json gpus = Json::array();
  for (std::size_t i = 0; i < env.gpus.size(); ++i) {
    gpus.push_back(
        gpu_json(env.gpus[i], i < env.gpu_details.size() ? env.gpu_details[i] : GpuDetails{}));
  }
  Json libraries = Json::object();
  for (const auto& [name, version] : env.libraries) libraries[name] = version;
  return {{"host", env.host},
          {"cpu", cpu_json(env)},
          {"memory_bytes", env.memory_bytes},
          {"cpu_limit", or_null(env.hosting.cpu_limit)},
          {"memory_limit_bytes", or_null(env.hosting.memory_limit_bytes)},
          {"machine", text_or_null(env.hosting.machine)},
          {"virtualisation", text_or_null(env.hosting.virtualisation)},
          {"container", text_or_null(env.hosting.container)},
          {"huge_pages", text_or_null(env.hosting.huge_pages)},
          {"clock_source", text_or_null(env.hosting.clock_source)},
          {"gpus", std::move(gpus)},
          {"gpu_driver", text_or_null(env.hosting.gpu_driver)},
          {"no_gpu_reason", env.no_gpu},
          {"os", env.os},
          {"kernel", env.kernel},
          {"version", env.version},
          {"revision", env.revision},
          {"compiler", env.compiler},
          {"flags", env.flags},
          {"build_type", env.build_type},
          {"libraries", std::move(libraries)}};
}

}  // namespace

std::string environment_json(const Environment& env) {
  Json document = lasting(env);
  document["available_bytes"] = env.available_bytes;
  return json_document(document);
}

EnvironmentRecord environment_record(const Environment& env, const std::string& label) {
  EnvironmentRecord record;
  record.label = label;
  record.host = env.host;
  record.cpu = env.cpu;
  std::vector<std::string> names;
  for (const GpuInfo& gpu : env.gpus) names.push_back(gpu.name);
  record.gpus = joined(names, "; ");
  record.fingerprint = json_text(lasting(env));
  record.key = fmt::format("{:016x}", hash_of(record.fingerprint + '\n' + label));
  return record;
}

}  // namespace ridgeline
