#include "backends/registry.h"

#include <array>

#include "base/error.h"
#include "base/suggest.h"

namespace ridgeline {

std::span<const Backend* const> all_backends() {
  static constexpr std::array<const Backend*, 5> kBackends = {
      &reference_backend, &native_backend, &onednn_backend, &cuda_backend, &cudnn_backend};
  return kBackends;
}

std::vector<const Backend*> usable_backends() {
  std::vector<const Backend*> usable;
  for (const Backend* backend : all_backends()) {
    if (backend->unavailable().empty()) usable.push_back(backend);
  }
  return usable;
}

std::vector<const Backend*> providers_of(std::string_view name) {
  const auto known = all_backends();
  std::vector<std::string_view> names;
  for (const Backend* backend : known) {
    names.push_back(backend->name);
    if (backend->name != name) continue;
    const std::string reason = backend->unavailable();
    if (!reason.empty()) bad_input("backend '{}' is not available: {}", name, reason);
    std::vector<const Backend*> providers = {backend};
    if (backend == &onednn_backend) providers.push_back(&native_backend);
    if (backend == &cudnn_backend) providers.push_back(&cuda_backend);
    return providers;
  }
  names.push_back("auto");
  bad_input("unknown backend '{}'{}", name, did_you_mean(name, names));
}

}  // namespace ridgeline
