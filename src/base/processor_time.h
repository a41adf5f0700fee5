#pragma once

// Processor time that was used so far, in seconds.

namespace ridgeline {

[[nodiscard]] double processor_seconds();         // by this process
[[nodiscard]] double thread_processor_seconds();  // by this thread
// By another process of the same user; 0 where it is gone.
[[nodiscard]] double processor_seconds_of(int process);

}  // namespace ridgeline
