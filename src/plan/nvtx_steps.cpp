#include "plan/nvtx_steps.h"

#include "base/error.h"
#include "devices/nvtx.h"

namespace ridgeline {

void NvtxSteps::before_run(std::size_t plan) {
  Names& names = plans_[plan];
  if (names.steps.empty()) {
    for (const Step& step : session_.plan(plan).steps) {
      names.steps.push_back(fmt::format("{} {}", step.layer, step.kernel_name()));
    }
  }
  current_ = &names;
  nvtx_push(fmt::format("iteration {}", names.runs++));
}

void NvtxSteps::after_run() { nvtx_pop(); }

void NvtxSteps::before(std::size_t step) { nvtx_push(current_->steps[step]); }

void NvtxSteps::after(std::size_t) { nvtx_pop(); }

}  // namespace ridgeline
