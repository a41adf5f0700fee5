#include "backends/cudnn/plan_choice.h"
#include "backends/cudnn/product_kernel.h"
#include "backends/cudnn/rows.h"
#include "plan/patterns.h"

namespace ridgeline::cudnn {
namespace {

std::string check_product(const Problem& problem) {
  if (std::string reason = refuse_product(problem); !reason.empty()) return reason;
  const Product product = product_of(problem);
  if (product.biased && product.dtype != DType::f32) {
    return "cuBLASLt adds a bias of the result's own type, and ours is f32";
  }
  return can_compute(product) ? std::string() : "cuBLASLt does not compute it";
}

std::unique_ptr<Kernel> make(const Problem& problem, std::span<const Layout>) {
  return make_product(problem);
}

// Without the activation, where that one cannot be fused.
std::vector<NodeId> match_bias(const Graph& graph, NodeId first) {
  std::vector<NodeId> nodes = patterns::linear_epilogue(graph, first);
  if (nodes.size() != 3) return {};
  nodes.pop_back();
  return nodes;
}

}  // namespace

std::span<const KernelRow> linear_rows() {
  static constexpr KernelRow kRows[] = {
      {"linear_epilogue", patterns::linear_epilogue, check_product, make},
      {"linear_bias", match_bias, check_product, make},
      {"linear", match_one<OpKind::linear>, check_product, make},
      {"linear_backward_data", match_one<OpKind::linear_backward_data>, check_product, make},
      {"linear_backward_weights", match_one<OpKind::linear_backward_weights>, check_product, make},
  };
  return kRows;
}

}  // namespace ridgeline::cudnn
