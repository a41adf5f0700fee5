#pragma once

// What this process holds of the host's memory, by what it is used for.

#include <cstddef>
#include <cstdint>
#include <istream>
#include <span>

namespace ridgeline {

// Resident bytes, from /proc/self/smaps; the fields but `heap_…` add up to `resident`.
struct HostMemory {
  std::int64_t resident = 0;
  std::int64_t libraries = 0;       // the program's own code and data, and those of its libraries
  std::int64_t files = 0;           // other files that are mapped: packed data sets
  std::int64_t generated_code = 0;  // that kernels wrote at run time
  std::int64_t stacks = 0;
  std::int64_t driver = 0;  // what the driver of a graphics processor has mapped of its devices
  std::int64_t arenas = 0;  // of all sessions: memory for which large pages were asked
  std::int64_t other = 0;   // the heap above all
  // By the allocator's own count, touched or not.
  std::int64_t heap_used = 0, heap_free = 0;
  bool driver_loaded = false;  // which takes memory past the allocator
};
[[nodiscard]] HostMemory read_host_memory();
// The same from the text of an smaps file, without the heap's counts.
[[nodiscard]] HostMemory parse_smaps(std::istream& smaps);
// Bytes that the allocator has handed out.
[[nodiscard]] std::int64_t heap_bytes();
// Of a stretch of memory, the bytes in pages that are in use.
[[nodiscard]] std::int64_t resident_bytes(std::span<const std::byte> memory);

}  // namespace ridgeline
