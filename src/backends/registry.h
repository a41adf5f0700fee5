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

[[nodiscard]] std::span<const Backend* const> all_backends();
// Those that can be used here.
[[nodiscard]] std::vector<const Backend*> usable_backends();

// The providers behind a backend's name, first choice first: a library is completed by our own
// kernels, never by the reference. Throws bad_input for an unknown or unavailable name.
[[nodiscard]] std::vector<const Backend*> providers_of(std::string_view backend);

}  // namespace ridgeline
