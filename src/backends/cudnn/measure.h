#pragma once

// Times executables on memory of their own, before a session's memory exists.

#include <memory>

#include "backends/cudnn/executable.h"

namespace ridgeline::cudnn {

// A product's operands on the device, full of random numbers: zeros would flatter the hardware.
class Bench {
 public:
  explicit Bench(const Product& product);
  ~Bench();
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  // False where the device has too little free memory.
  [[nodiscard]] bool ready() const;

  // Seconds of one run among others in a captured graph, as in a training step: the time that the
  // host needs for a launch does not count. Infinity for what fails, cannot be captured or has no
  // room for its workspace; what is clearly slower than `best` is timed roughly.
  [[nodiscard]] double seconds(const Executable& executable, double best);

 private:
  class Setup;
  std::unique_ptr<Setup> setup_;
};

// Seconds that a pass over so many bytes takes, read and written each counted once.
[[nodiscard]] double pass_seconds(double bytes);

// The current device, as a key for measurements: "NVIDIA H200".
[[nodiscard]] std::string device_name();

}  // namespace ridgeline::cudnn
