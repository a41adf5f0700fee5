#include "backends/cudnn/product_kernel.h"

#include <algorithm>

#include "backends/cuda/common.h"
#include "backends/cudnn/graph.h"
#include "backends/cudnn/plan_choice.h"
#include "backends/registry.h"
#include "base/error.h"

namespace ridgeline::cudnn {
namespace {

constexpr std::size_t kSpareWorkspace = std::size_t{1} << 20;

// Elements from one pixel to the next of each image; the bias has none.
using PixelStrides = std::array<std::int64_t, kOperands>;

PixelStrides strides_of(const Product& product) {
  PixelStrides strides{};
  for (const Operand operand : {kFirst, kSecond, kResult}) {
    strides[operand] = image_of(product, operand).stride;
  }
  return strides;
}

// Weights and their gradients are never slices.
Operand weights_of(const Product& product) {
  return product.direction == Direction::backward_weights ? kResult : kSecond;
}

// How many concatenations a value goes into.
std::ptrdiff_t concats_of(const Graph& graph, ValueId id) {
  const std::vector<NodeId>& users = graph.value(id).users;
  return std::count_if(users.begin(), users.end(),
                       [&](NodeId user) { return graph.node(user).kind == OpKind::concat; });
}

// Whether a plan may make the value a slice of a wider one: it goes into a concatenation, is cut
// out of another value, or is a concatenation of what goes into a longer one as well.
bool may_be_slice(const Graph& graph, ValueId id) {
  const Value& value = graph.value(id);
  if (value.spec.shape.rank() != 4) return false;
  if (concats_of(graph, id) > 0) return true;
  if (value.producer == kNoNode) return false;
  const Node& producer = graph.node(value.producer);
  if (producer.kind == OpKind::slice) return true;
  return producer.kind == OpKind::concat && concats_of(graph, producer.inputs[0]) > 1;
}

// Our own kernel for the same problem in the same layouts; null when there is none.
std::unique_ptr<Kernel> own_kernel(const Problem& problem, const Kernel& kernel) {
  for (const KernelRow& row : cuda_backend.rows()) {
    if (row.match(*problem.graph, problem.nodes[0]) != problem.nodes) continue;
    if (!row.check(problem).empty()) continue;
    std::unique_ptr<Kernel> made = row.make(problem, kernel.input_layouts);
    if (made->traits.slices && made->input_layouts == kernel.input_layouts &&
        made->output_layouts == kernel.output_layouts) {
      return made;
    }
  }
  return nullptr;
}

std::size_t with_room_to_align(std::size_t workspace_bytes) {
  return workspace_bytes == 0 ? 0 : workspace_bytes + kWorkspaceAlignment;
}

std::byte* aligned_up(std::byte* address) {
  const auto number = reinterpret_cast<std::uintptr_t>(address);
  return address + (kWorkspaceAlignment - number % kWorkspaceAlignment) % kWorkspaceAlignment;
}

class ProductKernel final : public Kernel {
 public:
  ProductKernel(const Problem& problem, Product product)
      : product_(std::move(product)), dense_(choice_for(product_, problem.measure).executable) {
    ensure(dense_ != nullptr, "no library computes {}", problem.text());
    const OperandValues values = operand_values(problem);
    for (const Operand operand : {kFirst, kSecond, kBias}) {
      if (values[operand] != kNoValue) inputs_[operand] = problem.input_index(values[operand]);
    }
    output_ = problem.output_index(values[kResult]);
    set_layouts(*this, problem, Layout::nhwc());
    implementation = dense_->name;
    workspace_bytes = with_room_to_align(dense_->workspace_bytes);
    prepare_slices(problem, values);
  }

  void run(const KernelArgs& args) const override {
    const Tensor& result = args.outputs[output_];
    if (result.data == nullptr) return;
    Operands operands{};
    PixelStrides strides{};
    for (const Operand operand : {kFirst, kSecond, kBias, kResult}) {
      if (operand == kBias && !product_.biased) continue;
      const Tensor& tensor = operand == kResult ? result : args.inputs[inputs_[operand]];
      operands[operand] = tensor.data;
      if (operand != kBias) strides[operand] = pixel_stride(operand, tensor);
    }
    const Executable* executable = executable_for(operands, strides);
    if (executable == nullptr) return own_->run(args);
    executable->execute(operands, aligned_up(args.workspace), cuda::stream_of(args));
  }

 private:
  struct Sliced {
    PixelStrides strides;
    std::shared_ptr<const Executable> executable;  // null: our own kernel computes it
  };

  // A plan is made before slices are settled. What is fastest with slices is therefore measured on
  // likely strides; the plan for the real ones is made at the first run, in the workspace that was
  // asked for here.
  void prepare_slices(const Problem& problem, const OperandValues& values) {
    Product likely = product_;
    const auto step = static_cast<std::int64_t>(kAlignment / size_of(product_.dtype));
    bool any = false, all_aligned = true;
    for (const Operand operand : {kFirst, kSecond, kResult}) {
      if (operand == weights_of(product_) || !may_be_slice(*problem.graph, values[operand])) {
        continue;
      }
      Image& image = image_of(likely, operand);
      any = true;
      all_aligned = all_aligned && image.c % step == 0;
      image.stride = 2 * image.c;
    }
    if (!any) return;
    own_ = own_kernel(problem, *this);
    if (own_ == nullptr) return;
    traits.slices = true;
    if (all_aligned) sliced_choice_ = choose_sliced(likely, problem.measure);
    workspace_bytes = std::max(workspace_bytes, own_->workspace_bytes);
    if (sliced_choice_ == nullptr) return;
    // An engine may want a little more for other strides.
    const std::size_t more = sliced_choice_->workspace_bytes > 0 ? kSpareWorkspace : 0;
    workspace_bytes =
        std::max(workspace_bytes, with_room_to_align(sliced_choice_->workspace_bytes + more));
  }

  // What is fastest without gaps stays so where gaps cost it nothing. But most engines of cuDNN
  // pack a slice into their workspace first, and then it pays to look around.
  [[nodiscard]] std::shared_ptr<const Executable> choose_sliced(const Product& likely,
                                                                bool measure) const {
    auto same = executable_named(likely, dense_->name);
    if (same != nullptr && same->workspace_bytes <= dense_->workspace_bytes) return same;
    return choice_for(likely, measure).executable;
  }

  [[nodiscard]] std::int64_t pixel_stride(Operand operand, const Tensor& tensor) const {
    const Image& image = image_of(product_, operand);
    if (operand == weights_of(product_) || image.pixels() == 1) return image.stride;
    return cuda::rows_of(tensor).stride;
  }

  // Null: our own kernel.
  [[nodiscard]] const Executable* executable_for(const Operands& operands,
                                                 const PixelStrides& strides) const {
    const bool aligned = std::all_of(operands.begin(), operands.end(), [](const std::byte* data) {
      return reinterpret_cast<std::uintptr_t>(data) % kAlignment == 0;
    });
    const bool dense = strides == strides_of(product_);
    if (aligned && dense) return dense_.get();
    if (own_ == nullptr) {
      fail("{}: an operand is {}", product_.text(), dense ? "not aligned" : "a slice");
    }
    if (!aligned || sliced_choice_ == nullptr) return nullptr;
    const auto known = std::find_if(sliced_.begin(), sliced_.end(),
                                    [&](const Sliced& s) { return s.strides == strides; });
    if (known != sliced_.end()) return known->executable.get();
    return sliced_.emplace_back(Sliced{strides, make_sliced(strides)}).executable.get();
  }

  [[nodiscard]] std::shared_ptr<const Executable> make_sliced(const PixelStrides& strides) const {
    Product product = product_;
    for (const Operand operand : {kFirst, kSecond, kResult}) {
      const auto bytes = static_cast<std::size_t>(strides[operand]) * size_of(product_.dtype);
      Image& image = image_of(product, operand);
      if (strides[operand] != image.stride && bytes % kAlignment != 0) return nullptr;
      image.stride = strides[operand];
    }
    const std::size_t room =
        workspace_bytes > kWorkspaceAlignment ? workspace_bytes - kWorkspaceAlignment : 0;
    auto same = executable_named(product, sliced_choice_->name);
    if (same != nullptr && same->workspace_bytes <= room) return same;
    return executable_within(product, room);
  }

  Product product_;
  std::shared_ptr<const Executable> dense_, sliced_choice_;
  std::unique_ptr<Kernel> own_;  // where operands may be slices, for those that lie badly
  std::array<std::size_t, kOperands> inputs_{};
  std::size_t output_ = 0;
  mutable std::vector<Sliced> sliced_;
};

}  // namespace

std::unique_ptr<Kernel> make_product(const Problem& problem) {
  return std::make_unique<ProductKernel>(problem, product_of(problem));
}

}  // namespace ridgeline::cudnn
