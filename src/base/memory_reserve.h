#pragma once

// Memory kept back for the moment when there is no more.

namespace ridgeline {

// From now on the first allocation with `new` that fails is tried again with the reserve given
// back. So functions that may not throw, such as destructors of libraries, come to their end, and
// so does the clean-up after an allocation that was too large for the reserve too: that one, and
// every later one, throws std::bad_alloc.
void keep_memory_reserve();

// Whether it was needed.
[[nodiscard]] bool memory_ran_out() noexcept;

}  // namespace ridgeline
