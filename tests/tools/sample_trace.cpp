// Writes a trace of a sample profile: a real one of the CPU, or a made-up one of a graphics
// processor. scripts/check_trace.py reads them with HolisticTraceAnalysis.

#include <fmt/core.h>

#include <exception>
#include <string>

#include "measure/profile/trace.h"
#include "support/sample_profiles.h"

int main(int argc, char** argv) {
  const std::string kind = argc == 3 ? argv[1] : "";
  if (kind != "cpu" && kind != "gpu" && kind != "gpu-graph") {
    fmt::print(stderr, "usage: sample_trace cpu|gpu|gpu-graph FILE.json[.gz]\n");
    return 2;
  }
  try {
    using namespace ridgeline;
    const auto launching = kind == "gpu" ? ridgeline::testing::Launching::one_by_one
                                         : ridgeline::testing::Launching::recorded;
    write_trace(kind == "cpu" ? ridgeline::testing::stepped_profile("mnist_cnn", 64, 3)
                              : ridgeline::testing::made_up_gpu_profile(3, 40, 2, launching),
                argv[2]);
  } catch (const std::exception& error) {
    fmt::print(stderr, "sample_trace: {}\n", error.what());
    return 1;
  }
  return 0;
}
