#include "backends/cudnn/product.h"

#include "backends/cuda/common.h"
#include "base/error.h"
#include "plan/patterns.h"

namespace ridgeline::cudnn {
namespace {

Direction direction_of(OpKind kind) {
  switch (kind) {
    case OpKind::conv2d_backward_data:
    case OpKind::linear_backward_data:
      return Direction::backward_data;
    case OpKind::conv2d_backward_weights:
    case OpKind::linear_backward_weights:
      return Direction::backward_weights;
    default:
      return Direction::forward;
  }
}

Image dense_image(const Shape& shape) {
  return {shape[0], shape[1], shape.height(), shape.width(), shape[1]};
}

// Which of a product's images an operand is.
Image Product::*member_of(Direction direction, Operand operand) {
  switch (direction) {
    case Direction::forward:
      return operand == kFirst    ? &Product::src
             : operand == kSecond ? &Product::weights
                                  : &Product::dst;
    case Direction::backward_data:
      return operand == kFirst    ? &Product::dst
             : operand == kSecond ? &Product::weights
                                  : &Product::src;
    case Direction::backward_weights:
      return operand == kFirst    ? &Product::src
             : operand == kSecond ? &Product::dst
                                  : &Product::weights;
  }
  fail("unknown direction {}", static_cast<int>(direction));
}

std::string_view name_of(Direction direction) {
  switch (direction) {
    case Direction::forward:
      return "forward";
    case Direction::backward_data:
      return "backward_data";
    case Direction::backward_weights:
      return "backward_weights";
  }
  return "?";
}

std::string text_of(const Image& image) {
  const std::string dims = fmt::format("{}x{}x{}x{}", image.n, image.c, image.h, image.w);
  return image.stride == image.c ? dims : fmt::format("{}/{}", dims, image.stride);
}

// Others would cost accuracy: the engines approximate exponentials.
bool is_fused(ActivationKind kind) {
  return kind == ActivationKind::relu || kind == ActivationKind::relu6 ||
         kind == ActivationKind::leaky_relu;
}

}  // namespace

bool Product::pointwise() const {
  return conv.kernel_h == 1 && conv.kernel_w == 1 && conv.stride_h == 1 && conv.stride_w == 1 &&
         conv.pad_top == 0 && conv.pad_left == 0 && conv.pad_bottom == 0 && conv.pad_right == 0;
}

std::string Product::text() const {
  std::string text =
      fmt::format("{} {} {} {} -> {} s{}x{} p{},{},{},{} d{}x{} {}", linear ? "linear" : "conv2d",
                  name_of(direction), text_of(src), text_of(weights), text_of(dst), conv.stride_h,
                  conv.stride_w, conv.pad_top, conv.pad_left, conv.pad_bottom, conv.pad_right,
                  conv.dilation_h, conv.dilation_w, ridgeline::name_of(dtype));
  if (tf32) text += " tf32";
  if (biased) text += " bias";
  if (activation) text += ' ' + ridgeline::text_of(OpKind::activation, *activation);
  return text;
}

const Image& image_of(const Product& product, Operand operand) {
  return product.*member_of(product.direction, operand);
}

Image& image_of(Product& product, Operand operand) {
  return product.*member_of(product.direction, operand);
}

OperandValues operand_values(const Problem& problem) {
  const patterns::Chain chain = patterns::chain_of(problem);
  return {chain.root->inputs[0], chain.root->inputs[1],
          chain.bias == nullptr ? kNoValue : chain.bias->inputs[1],
          problem.node(problem.nodes.size() - 1).outputs[0]};
}

std::string refuse_product(const Problem& problem) {
  if (std::string reason = cuda::refuse_doubles(problem); !reason.empty()) return reason;
  const patterns::Chain chain = patterns::chain_of(problem);
  const OperandValues values = operand_values(problem);
  const auto type = [&](Operand operand) {
    return problem.graph->value(values[operand]).spec.dtype;
  };
  if (type(kFirst) != type(kSecond) || type(kFirst) != type(kResult)) {
    return "the libraries take operands of one type";
  }
  if (chain.bias != nullptr && type(kBias) != DType::f32) return "a bias is f32 here";
  if (const auto* conv = std::get_if<Conv2dAttributes>(&chain.root->attributes);
      conv != nullptr && conv->groups > 1) {
    return "our own depthwise kernels are faster";
  }
  if (chain.activation != nullptr) {
    const auto kind = std::get<ActivationAttributes>(chain.activation->attributes).kind;
    if (!is_fused(kind)) return fmt::format("{} is not fused here", ridgeline::name_of(kind));
  }
  return {};
}

Product product_of(const Problem& problem) {
  const patterns::Chain chain = patterns::chain_of(problem);
  const OperandValues values = operand_values(problem);
  Product product;
  product.direction = direction_of(chain.root->kind);
  const auto* conv = std::get_if<Conv2dAttributes>(&chain.root->attributes);
  product.linear = conv == nullptr;
  if (conv != nullptr) product.conv = *conv;
  for (const Operand operand : {kFirst, kSecond, kResult}) {
    const TensorSpec& spec = problem.graph->value(values[operand]).spec;
    image_of(product, operand) = dense_image(spec.shape);
    product.dtype = spec.dtype;
  }
  product.biased = chain.bias != nullptr;
  if (chain.activation != nullptr) {
    product.activation = std::get<ActivationAttributes>(chain.activation->attributes);
  }
  // The permission means nothing for the other types: their products are exact anyway.
  product.tf32 = problem.graph->allows_tf32() && product.dtype == DType::f32;
  return product;
}

}  // namespace ridgeline::cudnn
