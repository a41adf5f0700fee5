// Patterns of factors, whole samples that are dropped, and shuffled halves.

#include "support/op_cases.h"

namespace ridgeline::testing {
namespace {

constexpr DropoutAttributes kDropSamples = {.probability = 0.4, .layer = 9, .per_sample = true};

// [layer scale +] [dropout of samples +] add: the end of a ConvNeXt or MBConv block.
void add_block_end(std::vector<OpCase>& cases, const std::string& name, const Shape& shape,
                   bool scale, bool drop, bool residual_first = false) {
  CaseBuilder builder("pattern.block_end_" + name);
  const ValueId src = builder.input(shape), residual = builder.input(shape);
  const ValueId factor = scale ? builder.parameter({shape[1]}) : kNoValue;
  ValueId value = src;
  if (scale) value = builder.node(OpKind::multiply, {value, factor});
  if (drop) value = builder.node(OpKind::dropout, {value}, kDropSamples);
  if (residual_first) {
    builder.node(OpKind::add, {residual, value});
  } else {
    builder.node(OpKind::add, {value, residual});
  }
  cases.push_back(builder.done());
}

void add_shuffled_halves(std::vector<OpCase>& cases, const std::string& name, const Shape& half) {
  CaseBuilder forward("pattern.concat_shuffle_" + name);
  const ValueId first = forward.input(half), second = forward.input(half);
  const ValueId joined = forward.node(OpKind::concat, {first, second});
  forward.node(OpKind::shuffle, {joined}, ShuffleAttributes{2});
  cases.push_back(forward.done());

  for (const bool second_first : {false, true}) {
    CaseBuilder backward("pattern.shuffle_slices_" + name + (second_first ? "_turned" : ""));
    Shape whole = {half[0], 2 * half[1]};
    for (int axis = 2; axis < half.rank(); ++axis) whole.append(half[axis]);
    const ValueId apart =
        backward.node(OpKind::shuffle, {backward.input(whole)}, ShuffleAttributes{half[1]});
    for (const bool high : {second_first, !second_first}) {
      backward.node(OpKind::slice, {apart}, SliceAttributes{high ? half[1] : 0, half[1]});
    }
    cases.push_back(backward.done());
  }
}

// Its gradient, and that of a bias before it.
void add_block_end_backward(std::vector<OpCase>& cases, const std::string& name, const Shape& shape,
                            bool drop, bool bias) {
  CaseBuilder builder("pattern.block_end_backward_" + name);
  ValueId diff = builder.input(shape);
  const ValueId src = builder.input(shape), factor = builder.parameter({shape[1]});
  if (drop) diff = builder.node(OpKind::dropout, {diff}, kDropSamples);
  const ValueId product = builder.node(OpKind::multiply, {diff, factor});
  builder.node(OpKind::multiply_backward, {diff, src}, MultiplyAttributes{Broadcast::channel});
  if (!bias) return cases.push_back(builder.done());
  builder.node(OpKind::bias_backward, {product});
  builder.keep(product);
  cases.push_back(builder.done());
}

// The gradient of an activation behind a batch norm whose output is computed again.
void add_norm_again(std::vector<OpCase>& cases, ActivationKind kind, bool join, bool stored,
                    const Shape& shape = {3, 11, 6, 7}) {
  std::string name = "pattern.bn_again_" + std::string(name_of(kind));
  if (join) name += "_add";
  if (stored) name += "_stored";
  const std::int64_t channels = shape[1];
  if (channels != 11) name += fmt::format("_of_{}", channels);
  CaseBuilder builder(name);
  ValueId diff = builder.input(shape);
  const ValueId other = join ? builder.input(shape) : kNoValue;
  const ValueId src = builder.input(shape);
  const ValueId scale = builder.parameter({channels}), shift = builder.parameter({channels});
  const ValueId mean = builder.state({channels}, Role::statistics);
  const ValueId variance = builder.state({channels}, Role::statistics, Data::positive);
  if (join) diff = builder.node(OpKind::add, {diff, other});
  const ValueId again =
      builder.node(OpKind::bn_apply, {src, mean, variance, scale, shift}, BatchNormAttributes{});
  diff = builder.node(OpKind::activation_backward, {diff, again}, ActivationAttributes{kind});
  const ValueId sums =
      builder.node(OpKind::bn_backward_reduce, {diff, src, mean, variance}, BatchNormAttributes{});
  builder.node(OpKind::bn_backward_apply, {diff, src, mean, variance, scale, sums, sums + 1},
               BatchNormAttributes{});
  builder.keep(sums);
  builder.keep(sums + 1);
  if (stored) builder.keep(diff);
  cases.push_back(builder.done());
}

}  // namespace

void add_channel_pattern_cases(std::vector<OpCase>& cases) {
  add_block_end(cases, "scale_drop", {9, 7, 3, 5}, true, true);
  add_block_end(cases, "scale_drop_rows", {9, 17}, true, true);
  add_block_end(cases, "scale", {3, 48, 5, 3}, true, false, true);
  add_block_end(cases, "drop", {8, 16, 4, 4}, false, true);
  add_block_end(cases, "drop_second", {9, 5, 3, 3}, false, true, true);

  add_block_end_backward(cases, "drop", {9, 16, 5, 3}, true, true);
  add_block_end_backward(cases, "drop_of_7", {13, 7, 4, 4}, true, true);
  add_block_end_backward(cases, "drop_rows", {11, 24}, true, false);
  add_block_end_backward(cases, "scale_of_72", {5, 72, 9, 7}, false, true);

  CaseBuilder itself("pattern.block_end_drop_itself");
  const ValueId x = itself.input({9, 6, 3, 3});
  itself.node(OpKind::add, {itself.node(OpKind::dropout, {x}, kDropSamples), x});
  cases.push_back(itself.done());

  add_shuffled_halves(cases, "of_3", {2, 3, 3, 5});
  add_shuffled_halves(cases, "of_58", {2, 58, 4, 3});
  add_shuffled_halves(cases, "rows", {3, 19});

  for (const ActivationKind kind :
       {ActivationKind::silu, ActivationKind::hard_swish, ActivationKind::gelu}) {
    add_norm_again(cases, kind, false, false);
    add_norm_again(cases, kind, true, false);
  }
  add_norm_again(cases, ActivationKind::silu, true, true);
  add_norm_again(cases, ActivationKind::silu, false, false, {3, 48, 9, 11});
  add_norm_again(cases, ActivationKind::hard_swish, true, true, {2, 264, 7, 7});
  add_norm_again(cases, ActivationKind::silu, false, true, {5, 16, 13, 3});

  // Parts that are shuffled and used each by itself, as in ShuffleNet.
  CaseBuilder unit("pattern.split_branches");
  const ValueId src = unit.input({2, 12, 4, 5});
  const ValueId left = unit.node(OpKind::split, {src}, SplitAttributes{{6, 6}});
  const ValueId right = unit.node(OpKind::activation, {left + 1},
                                  ActivationAttributes{.kind = ActivationKind::hard_swish});
  const ValueId joined = unit.node(OpKind::concat, {left, right});
  unit.node(OpKind::shuffle, {joined}, ShuffleAttributes{2});
  cases.push_back(unit.done());
}

}  // namespace ridgeline::testing
