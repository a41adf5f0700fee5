#include "backends/cudnn/measure.h"
#include "backends/cudnn/plan_choice.h"
#include "backends/cudnn/product_kernel.h"
#include "backends/cudnn/rows.h"
#include "base/error.h"
#include "plan/patterns.h"

namespace ridgeline::cudnn {
namespace {

constexpr const char* kNoEngine = "neither cuDNN nor cuBLASLt computes it";

std::string check_plain(const Problem& problem) {
  if (std::string reason = refuse_product(problem); !reason.empty()) return reason;
  return can_compute(product_of(problem)) ? std::string() : kNoEngine;
}

// An epilogue saves a pass over the convolution's result, in which our own kernels would add the
// bias and activate, but fewer engines have one. Where the best of them loses more than that pass
// takes, the convolution is better left alone.
std::string check_fused(const Problem& problem) {
  if (std::string reason = refuse_product(problem); !reason.empty()) return reason;
  const Product fused = product_of(problem);
  if (!can_compute(fused)) return kNoEngine;
  Product plain = fused;
  plain.biased = false;
  plain.activation.reset();
  if (!can_compute(plain)) return {};
  const Choice& with = choice_for(fused, problem.measure);
  const Choice& without = choice_for(plain, problem.measure);
  if (with.seconds == 0.0 || without.seconds == 0.0) return {};
  const auto result_bytes = static_cast<double>(problem.output(0).bytes());
  const double apart = without.seconds + pass_seconds(2.0 * result_bytes);
  if (with.seconds <= apart) return {};
  return fmt::format("fused {} takes {:.1f} us, {} and a pass over its result {:.1f} us",
                     with.executable->name, 1e6 * with.seconds, without.executable->name,
                     1e6 * apart);
}

std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  return make_product(problem);
}

}  // namespace

std::span<const KernelRow> conv_rows() {
  static constexpr KernelRow kRows[] = {
      {"conv2d_epilogue", patterns::conv2d_epilogue, check_fused, make},
      {"conv2d", match_one<OpKind::conv2d>, check_plain, make},
      {"conv2d_backward_data", match_one<OpKind::conv2d_backward_data>, check_plain, make},
      {"conv2d_backward_weights", match_one<OpKind::conv2d_backward_weights>, check_plain, make},
  };
  return kRows;
}

}  // namespace ridgeline::cudnn
