#pragma once

// All backends of this build, in one binary. Adding one is a folder and a line here.

#include <span>
#include <string_view>
#include <vector>

#include "plan/kernel.h"

namespace ridgeline {

extern const Backend reference_backend;
extern const Backend native_backend;
extern const Backend onednn_backend;
extern const Backend cuda_backend;
extern const Backend cudnn_backend;
extern const Backend opencl_backend;

[[nodiscard]] std::span<const Backend* const> all_backends();
// Those that can be used here.
[[nodiscard]] std::vector<const Backend*> usable_backends();

// The backend that chooses among all of a device, step by step.
inline constexpr std::string_view kAuto = "auto";
// Every name that --backend takes, `auto` last.
[[nodiscard]] std::vector<std::string_view> backend_names();
// Null for `auto` and for names that no backend has.
[[nodiscard]] const Backend* find_backend(std::string_view name);
// What --backend is on a device of this kind ("cpu", "cuda") where it is not given.
[[nodiscard]] std::string_view default_backend(std::string_view kind);
// Our own kernels for such a device: what plans are made of that nothing may be measured for.
[[nodiscard]] std::string_view own_backend(std::string_view kind);
// Whether plans of it are made by measuring.
[[nodiscard]] bool measures(std::string_view backend);

// The providers behind a backend's name, first choice first: a library is completed by our own
// kernels, never by the reference. Throws bad_input for an unknown or unavailable name.
[[nodiscard]] std::vector<const Backend*> providers_of(std::string_view backend);

}  // namespace ridgeline
