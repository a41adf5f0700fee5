#include "predict/dry_exchange.h"

#include "base/error.h"

namespace ridgeline::predict {
namespace {

class DryExchange final : public Kernel {
 public:
  void run(const KernelArgs&) const override { fail("a dry plan cannot run"); }
};

constexpr KernelRow kRows[] = {{"all_reduce", match_one<OpKind::all_reduce>,
                                [](const Problem&) { return std::string(); }, make_dry_exchange}};

}  // namespace

std::unique_ptr<Kernel> make_dry_exchange(const Problem& problem, std::span<const Layout> layouts) {
  auto kernel = std::make_unique<DryExchange>();
  kernel->input_layouts.assign(layouts.begin(), layouts.end());
  for (const ValueId input : problem.node().inputs) {
    kernel->output_layouts.push_back(layouts[problem.input_index(input)]);
  }
  kernel->traits.beside = true;
  return kernel;
}

const Backend dry_exchange_backend = {
    .name = "dry-exchange",
    .device = "cpu",
    .unavailable = [] { return std::string(); },
    .version = [] { return std::string("1"); },
    .rows = [] { return std::span<const KernelRow>(kRows); },
    .make_reorder = [](const TensorSpec&, const Layout&,
                       const Layout&) { return std::unique_ptr<Kernel>(); }};

}  // namespace ridgeline::predict
