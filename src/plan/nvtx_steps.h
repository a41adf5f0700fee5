#pragma once

// Marks each run of a plan ("iteration 3") and each of its steps, as the host launches them, for
// tools that watch from outside. Within a replay the host launches no single steps: there the mark
// of the iteration stands alone.

#include <map>
#include <string>
#include <vector>

#include "plan/session.h"

namespace ridgeline {

class NvtxSteps final : public StepObserver {
 public:
  // REQUIRES: the session outlives it.
  explicit NvtxSteps(const Session& session) : session_(session) {}
  void before_run(std::size_t plan) override;
  void after_run() override;
  void before(std::size_t step) override;
  void after(std::size_t step) override;

 private:
  struct Names {
    std::vector<std::string> steps;
    std::int64_t runs = 0;
  };

  const Session& session_;
  std::map<std::size_t, Names> plans_;
  const Names* current_ = nullptr;
};

}  // namespace ridgeline
