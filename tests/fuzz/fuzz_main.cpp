// One libFuzzer program for each target; which one is told at compile time.

#include <cstring>
#include <stdexcept>

#include "support/fuzz_targets.h"

namespace {

const ridgeline::testing::FuzzTarget& target() {
  for (const auto& candidate : ridgeline::testing::fuzz_targets()) {
    if (std::strcmp(candidate.name, RIDGELINE_FUZZ_TARGET) == 0) return candidate;
  }
  throw std::logic_error("no such target: " RIDGELINE_FUZZ_TARGET);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ridgeline::testing::FuzzTarget& chosen = target();
  ridgeline::testing::run_target(chosen, {data, size});
  return 0;
}
