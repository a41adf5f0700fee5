// Convolutions as graphs for cuDNN: the convolution, then the bias and the activation on values
// that never reach memory.

#include <deque>
#include <set>

#include "backends/cudnn/executable.h"
#include "backends/cudnn/graph.h"
#include "base/error.h"

namespace ridgeline::cudnn {
namespace {

// Tensors of a graph: an operand's number is its id, and these two lie between the operations.
constexpr std::int64_t kConvolved = 10, kBiased = 11;

cudnnDataType_t data_type(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CUDNN_DATA_FLOAT;
    case DType::bf16:
      return CUDNN_DATA_BFLOAT16;
    case DType::f16:
      return CUDNN_DATA_HALF;
    default:
      fail("cuDNN: no convolution of {}", name_of(dtype));
  }
}

TensorPlace place_of(const Image& image, std::int64_t id, cudnnDataType_t type) {
  return {.id = id,
          .dims = {image.n, image.c, image.h, image.w},
          .strides = {image.h * image.w * image.stride, 1, image.w * image.stride, image.stride},
          .type = type};
}

Descriptor convolution_of(const Conv2dAttributes& a) {
  using Pair = std::array<std::int64_t, 2>;
  Descriptor conv(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  conv.set(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_DATA_FLOAT);
  conv.set(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_CROSS_CORRELATION);
  conv.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::int64_t{2});
  conv.set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, Pair{a.pad_top, a.pad_left});
  conv.set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, Pair{a.pad_bottom, a.pad_right});
  conv.set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, Pair{a.stride_h, a.stride_w});
  conv.set(CUDNN_ATTR_CONVOLUTION_DILATIONS, Pair{a.dilation_h, a.dilation_w});
  conv.finalize("describing a convolution");
  return conv;
}

// The names of the three convolutions' attributes, otherwise alike.
struct ConvolutionNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t convolution, src, weights, dst, alpha, beta;
};

ConvolutionNames names_of(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case Direction::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case Direction::backward_weights:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
  }
  fail("unknown direction {}", static_cast<int>(direction));
}

// A graph in the making.
class GraphBuilder {
 public:
  explicit GraphBuilder(const Product& product)
      : product_(product), type_(data_type(product.dtype)) {}

  std::shared_ptr<const OperationGraph> build() {
    const bool backward = product_.direction != Direction::forward;
    const bool plain = backward || (!product_.biased && !product_.activation);
    const Descriptor* dst = plain ? &operand(dst_operand()) : &between(kConvolved);
    add_convolution(*dst);
    if (product_.biased) {
      const Descriptor* biased = product_.activation ? &between(kBiased) : &operand(kResult);
      add_pointwise(pointwise(CUDNN_POINTWISE_ADD), *dst, &bias(), *biased);
      dst = biased;
    }
    if (product_.activation) add_pointwise(activation(), *dst, nullptr, operand(kResult));
    return std::make_shared<OperationGraph>(std::move(parts_), std::move(operations_));
  }

 private:
  const Descriptor& keep(Descriptor descriptor) {
    return parts_.emplace_back(std::move(descriptor));
  }

  const Descriptor& operand(Operand which) {
    return keep(describe(place_of(image_of(product_, which), which, type_)));
  }
  // What passes from one operation to the next keeps all its digits.
  const Descriptor& between(std::int64_t id) {
    TensorPlace place = place_of(product_.dst, id, CUDNN_DATA_FLOAT);
    place.is_virtual = true;
    return keep(describe(place));
  }
  const Descriptor& bias() {
    const Image channels = {.c = product_.dst.c, .stride = product_.dst.c};
    return keep(describe(place_of(channels, kBias, CUDNN_DATA_FLOAT)));
  }

  [[nodiscard]] Operand src_operand() const {
    return product_.direction == Direction::backward_data ? kResult : kFirst;
  }
  [[nodiscard]] Operand weights_operand() const {
    return product_.direction == Direction::backward_weights ? kResult : kSecond;
  }
  [[nodiscard]] Operand dst_operand() const {
    if (product_.direction == Direction::forward) return kResult;
    return product_.direction == Direction::backward_data ? kFirst : kSecond;
  }

  void add_convolution(const Descriptor& dst) {
    const ConvolutionNames names = names_of(product_.direction);
    Descriptor operation(names.type);
    operation.set(names.convolution, keep(convolution_of(product_.conv)));
    operation.set(names.src, operand(src_operand()));
    operation.set(names.weights, operand(weights_operand()));
    operation.set(names.dst, dst);
    // Of the type in which sums are taken.
    operation.set(names.alpha, 1.0F);
    operation.set(names.beta, 0.0F);
    operation.finalize("describing a convolution's operation");
    operations_.push_back(std::move(operation));
  }

  static Descriptor pointwise(cudnnPointwiseMode_t mode) {
    Descriptor descriptor(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    descriptor.set(CUDNN_ATTR_POINTWISE_MODE, mode);
    descriptor.set(CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_DATA_FLOAT);
    return descriptor;
  }

  [[nodiscard]] Descriptor activation() const {
    Descriptor descriptor = pointwise(CUDNN_POINTWISE_RELU_FWD);
    if (product_.activation->kind == ActivationKind::relu6) {
      descriptor.set(CUDNN_ATTR_POINTWISE_RELU_UPPER_CLIP, 6.0);
    } else if (product_.activation->kind == ActivationKind::leaky_relu) {
      descriptor.set(CUDNN_ATTR_POINTWISE_RELU_LOWER_CLIP_SLOPE, product_.activation->slope);
    }
    return descriptor;
  }

  void add_pointwise(Descriptor what, const Descriptor& src, const Descriptor* other,
                     const Descriptor& dst) {
    what.finalize("describing an epilogue");
    Descriptor operation(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, keep(std::move(what)));
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_XDESC, src);
    if (other != nullptr) operation.set(CUDNN_ATTR_OPERATION_POINTWISE_BDESC, *other);
    operation.set(CUDNN_ATTR_OPERATION_POINTWISE_YDESC, dst);
    operation.finalize("describing an epilogue's operation");
    operations_.push_back(std::move(operation));
  }

  const Product& product_;
  cudnnDataType_t type_;
  std::deque<Descriptor> parts_;  // references to its elements stay valid
  std::vector<Descriptor> operations_;
};

class EngineExecutable final : public Executable {
 public:
  EngineExecutable(std::unique_ptr<ExecutionPlan> plan, std::string engine, bool biased)
      : plan_(std::move(plan)) {
    name = std::move(engine);
    workspace_bytes = plan_->workspace_bytes();
    ids_ = {kFirst, kSecond, kResult};
    if (biased) ids_.push_back(kBias);
  }

  void execute(const Operands& operands, std::byte* workspace, Stream stream) const override {
    std::vector<void*> addresses;
    for (const std::int64_t id : ids_) addresses.push_back(operands[static_cast<std::size_t>(id)]);
    plan_->execute(ids_, addresses, workspace, stream);
  }

 private:
  std::unique_ptr<ExecutionPlan> plan_;
  std::vector<std::int64_t> ids_;
};

// Engines that give other bits each time, or fewer right ones than the product's type promises.
// Rounding f32 to a 16-bit type is more than TF32: f16 would lose range as well.
bool is_acceptable(const Engine& engine, const Product& product) {
  for (const cudnnBackendNumericalNote_t note :
       {CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC, CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS,
        CUDNN_NUMERICAL_NOTE_REDUCED_PRECISION_REDUCTION, CUDNN_NUMERICAL_NOTE_FFT,
        CUDNN_NUMERICAL_NOTE_WINOGRAD, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_4x4,
        CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_6x6, CUDNN_NUMERICAL_NOTE_WINOGRAD_TILE_13x13}) {
    if (engine.has(note)) return false;
  }
  const bool exact = product.dtype != DType::f32 || product.tf32;
  return exact || !engine.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
}

// Null for what is no convolution, or none that cuDNN can describe.
std::shared_ptr<const OperationGraph> graph_of(const Product& product) {
  if (product.linear) return nullptr;
  (void)cudnn_handle();  // a library that does not start is no reason to leave it out silently
  try {
    return GraphBuilder(product).build();
  } catch (const Error&) {
    return nullptr;
  }
}

}  // namespace

std::vector<Candidate> engine_candidates(const Product& product, std::size_t most) {
  const std::shared_ptr<const OperationGraph> graph = graph_of(product);
  if (graph == nullptr) return {};
  std::vector<Candidate> candidates;
  std::set<std::string> known;
  for (const auto mode : {CUDNN_HEUR_MODE_A, CUDNN_HEUR_MODE_B, CUDNN_HEUR_MODE_FALLBACK}) {
    if (candidates.size() >= most) break;
    for (Engine& proposed : graph->engines(mode)) {
      if (candidates.size() >= most) break;
      if (!is_acceptable(proposed, product) || !known.insert(proposed.name).second) continue;
      const auto engine = std::make_shared<Engine>(std::move(proposed));
      const bool biased = product.biased;
      candidates.push_back({engine->name, [graph, engine, biased] {
                              std::shared_ptr<const Executable> made;
                              if (auto plan = ExecutionPlan::make(graph, *engine)) {
                                made = std::make_shared<EngineExecutable>(std::move(plan),
                                                                          engine->name, biased);
                              }
                              return made;
                            }});
    }
  }
  return candidates;
}

}  // namespace ridgeline::cudnn
