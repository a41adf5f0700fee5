#pragma once

#include <exception>
#include <new>

namespace ridgeline {

inline constexpr const char* kOutOfMemory = "out of memory; a smaller batch or --limit needs less";

// What an exception tells a user.
[[nodiscard]] inline const char* reason_of(const std::exception& error) noexcept {
  return dynamic_cast<const std::bad_alloc*>(&error) != nullptr ? kOutOfMemory : error.what();
}

}  // namespace ridgeline
