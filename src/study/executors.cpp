#include "study/executors.h"

#include <fmt/core.h>

#include "backends/registry.h"
#include "devices/device.h"
#include "peers/peer_name.h"

namespace ridgeline::study {

namespace {

// Only auto runs on several kinds of devices; the others are known by their names, unless they run
// on a further GPU.
bool tells_device(const ExecutorName& executor) {
  return devices_of(executor.backend, {}) == std::vector<std::string>{executor.device};
}

}  // namespace

std::string ExecutorName::text() const {
  return tells_device(*this) ? backend : fmt::format("{} on {}", backend, device);
}

std::string ExecutorName::key() const {
  return tells_device(*this) ? backend : fmt::format("{}@{}", backend, device);
}

ExecutorName split_backend(const std::string& text) {
  const std::size_t at = text.find('@');
  if (at == std::string::npos) return {text, ""};
  const std::string device = text.substr(at + 1);
  return {text.substr(0, at), device_name(device)};
}

std::string_view device_kind_of(std::string_view backend) {
  if (backend == kAuto) return "any";
  if (is_peer(backend)) return parse_peer(backend).info->device;
  const Backend* known = find_backend(backend);
  return known == nullptr ? "cpu" : known->device;
}

std::vector<std::string> devices_of(const std::string& backend,
                                    const std::vector<std::string>& devices) {
  const ExecutorName named = split_backend(backend);
  if (!named.device.empty()) return {named.device};
  const std::string_view kind = device_kind_of(backend);
  if (devices.empty()) {
    if (kind == "any") return {"cpu", "cuda:0"};
    return {device_name(kind)};
  }
  std::vector<std::string> fitting;
  for (const std::string& device : devices) {
    const std::string name = device_name(device);
    const std::string its_kind = device_kind(name);
    const bool fits = kind == "any" ? its_kind != "mps" : kind == its_kind || name == "best";
    if (fits) fitting.push_back(name);
  }
  return fitting;
}

}  // namespace ridgeline::study
