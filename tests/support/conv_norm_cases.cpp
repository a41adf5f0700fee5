// Convolutions and the batch norms behind and before them, whose sums a backend may take while it
// writes what the convolution makes. Channels come in eights, as tensor cores' kernels want them.

#include <optional>

#include "support/op_cases.h"
#include "support/window.h"

namespace ridgeline::testing {
namespace {

const ActivationAttributes kRelu = {.kind = ActivationKind::relu};

struct NormedConv {
  std::string name;
  Shape src;
  std::int64_t outputs;
  Conv2dAttributes conv;
};

// Of one tile and of several, of pixels and channels that end within one.
std::vector<NormedConv> normed_convs() {
  return {{"pointwise", {2, 16, 5, 3}, 24, kernel(1, 1)},
          {"tiles", {4, 24, 13, 11}, 136, kernel(3, 3).pad(1)},
          {"wide", {3, 136, 9, 7}, 264, kernel(1, 1)}};
}

Shape weights_of(const NormedConv& p) {
  return {p.outputs, p.src[1], p.conv.kernel_h, p.conv.kernel_w};
}

void add_statistics(std::vector<OpCase>& cases, const NormedConv& p) {
  CaseBuilder builder("pattern.conv_statistics_" + p.name);
  const Shape numbers = {p.outputs};
  const ValueId src = builder.input(p.src), weights = builder.parameter(weights_of(p));
  const ValueId scale = builder.parameter(numbers), shift = builder.parameter(numbers);
  const ValueId running_mean = builder.state(numbers, Role::statistics);
  const ValueId running_variance = builder.state(numbers, Role::statistics, Data::positive);
  const ValueId conv = builder.node(OpKind::conv2d, {src, weights}, p.conv);
  const ValueId mean = builder.node(OpKind::bn_statistics, {conv}, BatchNormAttributes{});
  builder.node(OpKind::bn_update_running, {running_mean, running_variance, mean, mean + 1},
               BatchNormAttributes{.count = p.src[0] * p.src[2] * p.src[3]});
  const ValueId dst =
      builder.node(OpKind::bn_apply, {conv, mean, mean + 1, scale, shift}, BatchNormAttributes{});
  builder.node(OpKind::activation, {dst}, kRelu);
  builder.keep(mean);
  builder.keep(mean + 1);
  cases.push_back(builder.done());
}

// What comes before the convolution in the backward pass: another gradient is added, an activation,
// a normalisation. `kept`: others read what flows into the normalisation as well. `plus`: another
// gradient is added behind the normalisation.
struct Chain {
  std::string name;
  bool add = false, kept = false;
  std::optional<ActivationKind> activation = {};
  bool plus = false;
};

void add_gradient(std::vector<OpCase>& cases, const NormedConv& p, const Chain& chain) {
  CaseBuilder builder("pattern.conv_backward_" + chain.name + "bn_backward_" + p.name);
  Conv2dAttributes attributes = p.conv;
  attributes.src_h = p.src[2], attributes.src_w = p.src[3];
  const Shape numbers = {p.src[1]};
  const ValueId diff_dst = builder.input({p.src[0], p.outputs, p.src[2], p.src[3]});
  const ValueId weights = builder.parameter(weights_of(p));
  const ValueId other = chain.add ? builder.input(p.src) : kNoValue;
  const ValueId activated = chain.activation ? builder.input(p.src, Data::activated) : kNoValue;
  const ValueId shared = chain.plus ? builder.input(p.src) : kNoValue;
  const ValueId src = builder.input(p.src), scale = builder.parameter(numbers);
  const ValueId mean = builder.state(numbers, Role::statistics);
  const ValueId variance = builder.state(numbers, Role::statistics, Data::positive);
  ValueId diff = builder.node(OpKind::conv2d_backward_data, {diff_dst, weights}, attributes);
  if (chain.add) diff = builder.node(OpKind::add, {other, diff});
  if (chain.activation) {
    diff = builder.node(OpKind::activation_backward, {diff, activated},
                        ActivationAttributes{.kind = *chain.activation});
  }
  const ValueId sums =
      builder.node(OpKind::bn_backward_reduce, {diff, src, mean, variance}, BatchNormAttributes{});
  const ValueId before =
      builder.node(OpKind::bn_backward_apply, {diff, src, mean, variance, scale, sums, sums + 1},
                   BatchNormAttributes{});
  if (chain.plus) builder.node(OpKind::add, {shared, before});
  builder.keep(sums);
  builder.keep(sums + 1);
  if (chain.kept) builder.keep(diff);
  cases.push_back(builder.done());
}

}  // namespace

void add_conv_norm_cases(std::vector<OpCase>& cases) {
  const std::vector<Chain> chains = {
      {.name = ""},
      {.name = "relu_", .activation = ActivationKind::relu},
      {.name = "relu6_", .activation = ActivationKind::relu6},
      {.name = "add_", .add = true},
      {.name = "add_relu_", .add = true, .kept = true, .activation = ActivationKind::relu},
      {.name = "shared_", .plus = true},
      {.name = "shared_relu_", .activation = ActivationKind::relu, .plus = true}};
  for (const NormedConv& p : normed_convs()) {
    add_statistics(cases, p);
    for (const Chain& chain : chains) add_gradient(cases, p, chain);
  }
}

}  // namespace ridgeline::testing
