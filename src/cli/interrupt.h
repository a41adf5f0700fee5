#pragma once

namespace ridgeline::cli {

// While one lives, the first Ctrl-C (or SIGTERM) only raises a flag; the second ends the program.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  [[nodiscard]] bool raised() const { return signal() != 0; }
  [[nodiscard]] int signal() const;  // its number, or 0
};

}  // namespace ridgeline::cli
