// Cases of batch normalisation, loss, metrics and optimizers.

#include <fmt/core.h>

#include <array>

#include "support/op_cases.h"

namespace ridgeline::testing {
namespace {

struct NormCase {
  std::string name;
  Shape shape;
  Data data = Data::normal;
  bool big = false;
};

const std::vector<NormCase>& norm_cases() {
  static const std::vector<NormCase> list = {
      {"one_channel_two_rows", {2, 1}},
      {"rows", {5, 3}},
      {"image", {2, 3, 4, 5}},
      {"channels_of_17", {3, 17, 5, 7}},
      {"channels_of_16_batch_1", {1, 16, 9, 9}},
      {"one_pixel_each", {4, 33, 1, 1}},
      {"far_from_zero", {4, 5, 6, 6}, Data::shifted},
      {"resnet_stage", {4, 64, 14, 14}, Data::normal, true},
  };
  return list;
}

// scale and shift of BN are parameters; means and variances come from elsewhere.
struct Statistics {
  ValueId mean, variance;
};

Statistics statistics_of(CaseBuilder& builder, std::int64_t channels) {
  return {builder.state({channels}, Role::statistics),
          builder.state({channels}, Role::statistics, Data::positive)};
}

void add_norm_forward(std::vector<OpCase>& cases, const NormCase& p) {
  const std::int64_t channels = p.shape[1];
  CaseBuilder statistics("bn_statistics." + p.name);
  statistics.node(OpKind::bn_statistics, {statistics.input(p.shape, p.data)},
                  BatchNormAttributes{});
  cases.push_back(statistics.done(p.big));

  for (const bool frozen : {false, true}) {
    CaseBuilder apply(std::string("bn_apply.") + (frozen ? "frozen_" : "") + p.name);
    const ValueId src = apply.input(p.shape, p.data);
    const auto [mean, variance] = statistics_of(apply, channels);
    const ValueId scale = apply.parameter({channels}), shift = apply.parameter({channels});
    apply.node(OpKind::bn_apply, {src, mean, variance, scale, shift},
               BatchNormAttributes{.epsilon = 1e-5, .frozen = frozen});
    cases.push_back(apply.done(p.big));
  }
}

void add_norm_update(std::vector<OpCase>& cases, const NormCase& p, bool overflow) {
  const std::int64_t channels = p.shape[1];
  CaseBuilder update(std::string("bn_update_running.") + (overflow ? "overflow_" : "") + p.name);
  const auto [running_mean, running_variance] = statistics_of(update, channels);
  const auto [mean, variance] = statistics_of(update, channels);
  update.step().overflow = overflow ? 1 : 0;
  update.node(OpKind::bn_update_running, {running_mean, running_variance, mean, variance},
              BatchNormAttributes{.momentum = 0.3, .count = p.shape.elements() / channels});
  cases.push_back(update.done());
}

void add_norm_backward(std::vector<OpCase>& cases, const NormCase& p) {
  const std::int64_t channels = p.shape[1];
  CaseBuilder reduce("bn_backward_reduce." + p.name);
  const ValueId reduce_diff = reduce.input(p.shape), reduce_src = reduce.input(p.shape, p.data);
  const auto [mean, variance] = statistics_of(reduce, channels);
  reduce.node(OpKind::bn_backward_reduce, {reduce_diff, reduce_src, mean, variance},
              BatchNormAttributes{});
  cases.push_back(reduce.done(p.big));

  for (const bool frozen : {false, true}) {
    CaseBuilder apply(std::string("bn_backward_apply.") + (frozen ? "frozen_" : "") + p.name);
    const ValueId diff_dst = apply.input(p.shape), src = apply.input(p.shape, p.data);
    const auto [apply_mean, apply_variance] = statistics_of(apply, channels);
    const ValueId scale = apply.parameter({channels});
    const ValueId diff_scale = apply.input({channels}), diff_shift = apply.input({channels});
    apply.node(OpKind::bn_backward_apply,
               {diff_dst, src, apply_mean, apply_variance, scale, diff_scale, diff_shift},
               BatchNormAttributes{.frozen = frozen});
    cases.push_back(apply.done(p.big));
  }
}

struct LossCase {
  std::string name;
  std::int64_t rows, classes, valid_rows;
  double smoothing = 0.0;
  double loss_scale = 1.0;
  Data logits = Data::normal;
  bool big = false;
};

const std::vector<LossCase>& loss_cases() {
  static const std::vector<LossCase> list = {
      {"one_row_two_classes", 1, 2, 1},
      {"three_rows", 3, 10, 3},
      {"fewer_valid_rows", 7, 10, 5},
      {"four_classes", 9, 4, 9},
      {"smoothing", 5, 17, 5, 0.1},
      {"smoothing_fewer_valid_rows_scaled", 6, 10, 4, 0.2, 128.0},
      {"large_logits", 5, 13, 5, 0.0, 1.0, Data::large},
      {"large_logits_smoothing", 5, 13, 5, 0.1, 1.0, Data::large},
      {"imagenet_classes", 5, 1000, 5},
      {"mnist_batch_512", 512, 10, 512, 0.0, 1.0, Data::normal, true},
  };
  return list;
}

void add_loss_cases(std::vector<OpCase>& cases, const LossCase& p) {
  const Shape logits = {p.rows, p.classes};
  const LossAttributes attributes = {.label_smoothing = p.smoothing};
  const auto labels = [&](CaseBuilder& builder) {
    const ValueId id = builder.input({p.rows}, Data::labels, DType::i32);
    builder.step().valid_rows = p.valid_rows;
    builder.step().loss_scale = p.loss_scale;
    return id;
  };
  CaseBuilder forward("softmax_cross_entropy." + p.name);
  const ValueId forward_logits = forward.input(logits, p.logits);
  forward.node(OpKind::softmax_cross_entropy, {forward_logits, labels(forward)}, attributes);
  cases.push_back(forward.done(p.big));

  CaseBuilder backward("softmax_cross_entropy_backward." + p.name);
  const ValueId probabilities = backward.input(logits, Data::probabilities);
  backward.node(OpKind::softmax_cross_entropy_backward, {probabilities, labels(backward)},
                attributes);
  cases.push_back(backward.done(p.big));

  CaseBuilder metrics("metrics." + p.name);
  const ValueId totals = metrics.state({4}, Role::metric, Data::positive, DType::f64);
  const ValueId loss = metrics.input({}), metric_logits = metrics.input(logits, p.logits);
  metrics.node(OpKind::metrics, {totals, loss, metric_logits, labels(metrics)});
  cases.push_back(metrics.done(p.big));
}

struct OptimizerCase {
  std::string name;
  Shape shape;
  Attributes attributes;
  double loss_scale = 1.0;
  std::int64_t step = 1;
  bool overflow = false;
};

std::vector<OptimizerCase> optimizer_cases() {
  const SgdAttributes momentum = {.momentum = 0.9};
  const SgdAttributes all = {.momentum = 0.9, .weight_decay = 0.01, .nesterov = true};
  const AdamAttributes adam = {}, adam_decay = {.weight_decay = 0.1};
  const AdamAttributes adamw = {.weight_decay = 0.1, .decoupled = true};
  return {
      {"plain_one_element", {1}, SgdAttributes{}},
      {"plain_1031", {1031}, SgdAttributes{}},
      {"weight_decay", {7, 3}, SgdAttributes{.weight_decay = 0.1}},
      {"momentum_conv_weights", {16, 8, 3, 3}, momentum},
      {"momentum_loss_scale", {37}, momentum, 1024.0},
      {"nesterov", {13, 5}, SgdAttributes{.momentum = 0.9, .nesterov = true}},
      {"nesterov_weight_decay", {259}, all, 8.0},
      {"overflow_plain", {19}, SgdAttributes{}, 1.0, 1, true},
      {"overflow_momentum", {19}, all, 1.0, 1, true},
      {"first_step", {1}, adam},
      {"tenth_step", {16, 8, 3, 3}, adam, 1.0, 10},
      {"weight_decay_loss_scale", {37}, adam_decay, 1024.0, 3},
      {"decoupled", {259}, adamw, 1.0, 2},
      {"decoupled_rows", {7, 3}, adamw, 8.0, 100},
      {"overflow", {19}, adamw, 1.0, 1, true},
  };
}

void add_optimizer_case(std::vector<OpCase>& cases, const OptimizerCase& p) {
  const auto* sgd = std::get_if<SgdAttributes>(&p.attributes);
  CaseBuilder builder((sgd != nullptr ? "sgd." : "adam.") + p.name);
  builder.step().gradient_scale = p.loss_scale;
  builder.step().optimizer_step = p.step;
  builder.step().overflow = p.overflow ? 1 : 0;
  std::vector<ValueId> inputs = {builder.parameter(p.shape),
                                 builder.state(p.shape, Role::gradient)};
  if (sgd == nullptr) {
    inputs.push_back(builder.state(p.shape, Role::optimizer_state));
    inputs.push_back(builder.state(p.shape, Role::optimizer_state, Data::positive));
  } else if (sgd->momentum > 0.0) {
    inputs.push_back(builder.state(p.shape, Role::optimizer_state));
  }
  builder.node(sgd != nullptr ? OpKind::sgd : OpKind::adam, inputs, p.attributes);
  cases.push_back(builder.done());
}

// Gradients of several shapes, all finite or one not.
void add_guard_cases(std::vector<OpCase>& cases) {
  for (const bool overflow : {false, true}) {
    for (const bool due : {false, true}) {
      CaseBuilder builder(fmt::format("overflow_guard.{}{}", overflow ? "infinite" : "finite",
                                      due ? "_scale_due_to_grow" : ""));
      builder.step().loss_scale = 1024.0;
      builder.step().overflows = 3;
      builder.step().steps_in_range = due ? 1999 : 7;
      builder.node(
          OpKind::overflow_guard,
          {builder.state({17, 5, 3, 3}, Role::gradient),
           builder.state({1031}, Role::gradient, overflow ? Data::one_infinite : Data::normal),
           builder.state({3, 7}, Role::gradient)},
          OverflowGuardAttributes{});
      cases.push_back(builder.done());
    }
  }
}

// Gradients of several shapes, the second longer than one piece of a kernel; or a single one.
std::vector<ValueId> gradients_of(CaseBuilder& builder, bool several) {
  if (!several) return {builder.state({3, 7}, Role::gradient)};
  return {builder.state({17, 5, 3, 3}, Role::gradient), builder.state({20011}, Role::gradient),
          builder.state({3, 7}, Role::gradient)};
}

void add_gradient_cases(std::vector<OpCase>& cases, bool several) {
  const char* name = several ? "several" : "one";
  for (const bool first : {true, false}) {
    CaseBuilder builder(fmt::format("accumulate.{}_{}", first ? "first" : "more", name));
    std::vector<ValueId> inputs = gradients_of(builder, several);
    for (const ValueId value : gradients_of(builder, several)) inputs.push_back(value);
    builder.node(OpKind::accumulate, inputs, AccumulateAttributes{first});
    cases.push_back(builder.done());
  }
  for (const bool shrinks : {true, false}) {
    CaseBuilder builder(fmt::format("clip_norm.{}_{}", shrinks ? "shrinks" : "stays", name));
    builder.step().gradient_scale = 4.0;
    builder.node(OpKind::clip_norm, gradients_of(builder, several),
                 ClipNormAttributes{shrinks ? 0.5 : 1e6});
    cases.push_back(builder.done());
  }
  for (const bool in_place : {true, false}) {
    CaseBuilder builder(fmt::format("all_reduce.alone{}_{}", in_place ? "_in_place" : "", name));
    builder.node(OpKind::all_reduce, gradients_of(builder, several),
                 AllReduceAttributes{.weight = 0.5, .scale = 3.0, .in_place = in_place});
    cases.push_back(builder.done());
  }
  for (const std::int64_t channels : several ? std::array{13, 64} : std::array{1, 2}) {
    CaseBuilder builder(fmt::format("merge_statistics.alone_{}", channels));
    const auto [mean, variance] = statistics_of(builder, channels);
    builder.node(OpKind::merge_statistics, {mean, variance}, MergeStatisticsAttributes{});
    cases.push_back(builder.done());
  }
}

}  // namespace

void add_batch_norm_cases(std::vector<OpCase>& cases) {
  for (const NormCase& p : norm_cases()) {
    add_norm_forward(cases, p);
    add_norm_update(cases, p, false);
    add_norm_backward(cases, p);
  }
  add_norm_update(cases, norm_cases()[2], true);
}

void add_training_cases(std::vector<OpCase>& cases) {
  for (const LossCase& p : loss_cases()) add_loss_cases(cases, p);
  for (const OptimizerCase& p : optimizer_cases()) add_optimizer_case(cases, p);
  add_guard_cases(cases);
  for (const bool several : {true, false}) add_gradient_cases(cases, several);
}

}  // namespace ridgeline::testing
