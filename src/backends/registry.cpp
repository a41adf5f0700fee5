#include "backends/registry.h"

#include <array>

#include "base/error.h"
#include "base/suggest.h"

namespace ridgeline {

std::span<const Backend* const> all_backends() {
  static constexpr std::array<const Backend*, 6> kBackends = {&reference_backend, &native_backend,
                                                              &onednn_backend,    &cuda_backend,
                                                              &cudnn_backend,     &opencl_backend};
  return kBackends;
}

std::vector<const Backend*> usable_backends() {
  std::vector<const Backend*> usable;
  for (const Backend* backend : all_backends()) {
    if (backend->unavailable().empty()) usable.push_back(backend);
  }
  return usable;
}

std::vector<std::string_view> backend_names() {
  std::vector<std::string_view> names;
  for (const Backend* backend : all_backends()) names.push_back(backend->name);
  names.push_back(kAuto);
  return names;
}

const Backend* find_backend(std::string_view name) {
  for (const Backend* backend : all_backends()) {
    if (backend->name == name) return backend;
  }
  return nullptr;
}

namespace {

// Null for a kind of device that there is not.
const Backend* default_of(std::string_view kind) {
  for (const Backend* backend : all_backends()) {
    if (backend->device == kind && backend->by_default != Backend::Default::no) return backend;
  }
  return nullptr;
}

}  // namespace

std::string_view default_backend(std::string_view kind) {
  const Backend* backend = default_of(kind);
  const bool alone = backend != nullptr && backend->by_default == Backend::Default::alone;
  return alone ? backend->name : kAuto;
}

std::string_view own_backend(std::string_view kind) {
  const Backend* backend = default_of(kind);
  ensure(backend != nullptr, "no backend computes on {}", kind);
  return backend->name;
}

bool measures(std::string_view name) {
  const Backend* backend = find_backend(name);
  return name == kAuto || (backend != nullptr && backend->measures);
}

std::vector<const Backend*> providers_of(std::string_view name) {
  const Backend* backend = find_backend(name);
  if (backend == nullptr) {
    bad_input("unknown backend '{}'{}", name, did_you_mean(name, backend_names()));
  }
  const std::string reason = backend->unavailable();
  if (!reason.empty()) bad_input("backend '{}' is not available: {}", name, reason);
  std::vector<const Backend*> providers = {backend};
  if (backend->completed_by != nullptr) providers.push_back(backend->completed_by);
  return providers;
}

}  // namespace ridgeline
