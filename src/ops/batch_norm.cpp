#include "ops/batch_norm.h"

#include <cmath>

#include "base/error.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {
namespace {

const BatchNormAttributes& bn_of(const Attributes& attributes) {
  return std::get<BatchNormAttributes>(attributes);
}

// What one channel's statistics are taken over.
std::int64_t elements_per_channel(const Shape& src) { return src.elements() / src[1]; }

void check_src(std::string_view op, const TensorSpec& src) {
  if (src.shape.rank() < 2 || src.shape.elements() == 0) {
    bad_input("{}: src {} must be (N, C) or (N, C, H, W), and not empty", op, src.shape.text());
  }
}

void check_statistics_count(std::string_view op, const TensorSpec& src) {
  check_src(op, src);
  if (elements_per_channel(src.shape) == 1) {
    bad_input(
        "{}: src {} has one value per channel, which has no variance; train with a larger "
        "batch or image",
        op, src.shape.text());
  }
}

// Inputs [first, last) must hold one number per channel of src.
void check_channels(std::string_view op, const TensorSpec& src, std::span<const TensorSpec> inputs,
                    std::size_t first, std::size_t last) {
  const TensorSpec expected = {Shape{src.shape[1]}, wide_type(src.dtype)};
  for (std::size_t i = first; i < last; ++i) {
    if (inputs[i] != expected) {
      bad_input("{}: input {} {} {} does not fit src {}; it must be {} {}", op, i,
                inputs[i].shape.text(), name_of(inputs[i].dtype), src.shape.text(),
                expected.shape.text(), name_of(expected.dtype));
    }
  }
}

TensorSpec channel_spec(const TensorSpec& src) {
  return {Shape{src.shape[1]}, wide_type(src.dtype)};
}

std::vector<OutputSpec> statistics_outputs(const Attributes&, std::span<const TensorSpec> inputs) {
  check_statistics_count("bn_statistics", inputs[0]);
  return {{channel_spec(inputs[0])}, {channel_spec(inputs[0])}};
}

std::vector<OutputSpec> update_outputs(const Attributes& attributes,
                                       std::span<const TensorSpec> inputs) {
  for (const TensorSpec& input : inputs) {
    if (input.shape.rank() != 1 || input != inputs[0]) {
      bad_input("bn_update_running: {} and {}: all must be (C) of one type", inputs[0].shape.text(),
                input.shape.text());
    }
  }
  if (bn_of(attributes).count < 2) {
    bad_input("bn_update_running: a variance over {} values; count must be at least 2",
              bn_of(attributes).count);
  }
  return {{inputs[0], 0}, {inputs[1], 1}};
}

std::vector<OutputSpec> apply_outputs(const Attributes&, std::span<const TensorSpec> inputs) {
  check_src("bn_apply", inputs[0]);
  check_channels("bn_apply", inputs[0], inputs, 1, 5);
  return {{inputs[0]}};
}

void check_diff_dst(std::string_view op, std::span<const TensorSpec> inputs) {
  check_src(op, inputs[1]);
  if (inputs[0] != inputs[1]) {
    bad_input("{}: diff_dst {} and src {} must have the same shape and type", op,
              inputs[0].shape.text(), inputs[1].shape.text());
  }
}

std::vector<OutputSpec> reduce_outputs(const Attributes&, std::span<const TensorSpec> inputs) {
  check_diff_dst("bn_backward_reduce", inputs);
  check_channels("bn_backward_reduce", inputs[1], inputs, 2, 4);
  return {{channel_spec(inputs[1])}, {channel_spec(inputs[1])}};
}

std::vector<OutputSpec> backward_apply_outputs(const Attributes&,
                                               std::span<const TensorSpec> inputs) {
  check_diff_dst("bn_backward_apply", inputs);
  check_channels("bn_backward_apply", inputs[1], inputs, 2, 7);
  return {{inputs[1]}};
}

// The sum of the mean; difference, square and sum of the variance.
Cost statistics_work(const Attributes&, std::span<const TensorSpec> inputs,
                     std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), 4);
}

// Two products and a sum for each of mean and variance, and one product to take the bias out.
Cost update_work(const Attributes&, std::span<const TensorSpec> inputs,
                 std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), 7);
}

// (src - mean) * factor + shift.
Cost apply_work(const Attributes&, std::span<const TensorSpec> inputs,
                std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), 3);
}

// src - mean, times diff_dst, and two sums.
Cost reduce_work(const Attributes&, std::span<const TensorSpec> inputs,
                 std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), 4);
}

// (diff_dst - a - (src - mean) * b) * factor; frozen: diff_dst * factor.
Cost backward_apply_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
                         std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), bn_of(attributes).frozen ? 1 : 5);
}

// Covers the way through the statistics too, which is why bn_statistics has no rule of its own.
void apply_gradient(GradientContext& context) {
  const ValueId src = context.input(0), mean = context.input(1), variance = context.input(2);
  const ValueId scale = context.input(3), diff_dst = context.diff_output(0);
  if (!context.wanted(0) && !context.wanted(3) && !context.wanted(4)) return;
  const std::vector<ValueId> sums =
      context.emit(OpKind::bn_backward_reduce, context.attributes(),
                   {diff_dst, src, mean, variance}, Phase::backward_weights);
  if (context.wanted(3)) context.give(3, sums[0]);
  if (context.wanted(4)) context.give(4, sums[1]);
  if (context.wanted(0)) {
    context.give(0, context.emit(OpKind::bn_backward_apply, context.attributes(),
                                 {diff_dst, src, mean, variance, scale, sums[0], sums[1]},
                                 Phase::backward_data)[0]);
  }
}

// Two passes: the variance is taken around the mean already known.
template <typename T>
void statistics(const Tensor& src_tensor, const Tensor& mean_tensor,
                const Tensor& variance_tensor) {
  const Elements<T> src(src_tensor), mean(mean_tensor), variance(variance_tensor);
  const Shape& shape = src_tensor.shape();
  const auto count = static_cast<double>(elements_per_channel(shape));
  for (std::int64_t channel = 0; channel < shape[1]; ++channel) {
    double sum = 0.0, squares = 0.0;
    for_each_in_channel(shape, channel,
                        [&](auto n, auto c, auto h, auto w) { sum += src(n, c, h, w); });
    for_each_in_channel(shape, channel, [&](auto n, auto c, auto h, auto w) {
      const double difference = src(n, c, h, w) - sum / count;
      squares += difference * difference;
    });
    mean(channel) = static_cast<T>(sum / count);
    variance(channel) = static_cast<T>(squares / count);
  }
}

template <typename T>
void update_running(const OpCall& call) {
  const double momentum = call.state.overflow != 0 ? 0.0 : bn_of(call.attributes).momentum;
  const auto count = static_cast<double>(bn_of(call.attributes).count);
  const Elements<T> running_mean(call.inputs[0]), running_variance(call.inputs[1]);
  const Elements<T> mean(call.inputs[2]), variance(call.inputs[3]);
  const Elements<T> new_mean(call.outputs[0]), new_variance(call.outputs[1]);
  const auto blend = [&](double old, double batch) {
    return static_cast<T>(momentum == 0.0 ? old : (1 - momentum) * old + momentum * batch);
  };
  for (std::int64_t c = 0; c < call.inputs[0].shape()[0]; ++c) {
    new_mean(c) = blend(running_mean(c), mean(c));
    new_variance(c) = blend(running_variance(c), variance(c) * count / (count - 1));
  }
}

template <typename T>
void apply(const OpCall& call) {
  const double epsilon = bn_of(call.attributes).epsilon;
  const Elements<T> src(call.inputs[0]), mean(call.inputs[1]), variance(call.inputs[2]);
  const Elements<T> scale(call.inputs[3]), shift(call.inputs[4]), dst(call.outputs[0]);
  for_each_index(call.outputs[0].shape(), [&](auto n, auto c, auto h, auto w) {
    const double normal = (double{src(n, c, h, w)} - mean(c)) / std::sqrt(variance(c) + epsilon);
    dst(n, c, h, w) = static_cast<T>(normal * scale(c) + shift(c));
  });
}

template <typename T>
void backward_reduce(const OpCall& call) {
  const double epsilon = bn_of(call.attributes).epsilon;
  const Elements<T> diff_dst(call.inputs[0]), src(call.inputs[1]);
  const Elements<T> mean(call.inputs[2]), variance(call.inputs[3]);
  const Elements<T> diff_scale(call.outputs[0]), diff_shift(call.outputs[1]);
  const Shape& shape = call.inputs[1].shape();
  for (std::int64_t channel = 0; channel < shape[1]; ++channel) {
    const double deviation = std::sqrt(variance(channel) + epsilon);
    double products = 0.0, sum = 0.0;
    for_each_in_channel(shape, channel, [&](auto n, auto c, auto h, auto w) {
      const double normal = (double{src(n, c, h, w)} - mean(c)) / deviation;
      products += diff_dst(n, c, h, w) * normal;
      sum += diff_dst(n, c, h, w);
    });
    diff_scale(channel) = static_cast<T>(products);
    diff_shift(channel) = static_cast<T>(sum);
  }
}

template <typename T>
void backward_apply(const OpCall& call) {
  const BatchNormAttributes& a = bn_of(call.attributes);
  const Elements<T> diff_dst(call.inputs[0]), src(call.inputs[1]);
  const Elements<T> mean(call.inputs[2]), variance(call.inputs[3]), scale(call.inputs[4]);
  const Elements<T> diff_scale(call.inputs[5]), diff_shift(call.inputs[6]);
  const Elements<T> diff_src(call.outputs[0]);
  const Shape& shape = call.outputs[0].shape();
  const auto count = static_cast<double>(elements_per_channel(shape));
  for_each_index(shape, [&](auto n, auto c, auto h, auto w) {
    const double deviation = std::sqrt(variance(c) + a.epsilon);
    double diff = diff_dst(n, c, h, w);
    if (!a.frozen) {
      const double normal = (double{src(n, c, h, w)} - mean(c)) / deviation;
      diff -= (diff_shift(c) + normal * diff_scale(c)) / count;
    }
    diff_src(n, c, h, w) = static_cast<T>(diff * scale(c) / deviation);
  });
}

void statistics_reference(const OpCall& call) {
  with_float_type(call.inputs[0].spec.dtype, [&](auto type) {
    statistics<decltype(type)>(call.inputs[0], call.outputs[0], call.outputs[1]);
  });
}

void update_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype,
                  [&](auto type) { update_running<decltype(type)>(call); });
}

void apply_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) { apply<decltype(type)>(call); });
}

void reduce_reference(const OpCall& call) {
  with_float_type(call.inputs[1].spec.dtype,
                  [&](auto type) { backward_reduce<decltype(type)>(call); });
}

void backward_apply_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype,
                  [&](auto type) { backward_apply<decltype(type)>(call); });
}

std::string epsilon_text(const Attributes& attributes) {
  return fmt::format("eps{}", bn_of(attributes).epsilon);
}

std::string momentum_text(const Attributes& attributes) {
  return fmt::format("m{} n{}", bn_of(attributes).momentum, bn_of(attributes).count);
}

std::string backward_apply_text(const Attributes& attributes) {
  return epsilon_text(attributes) + (bn_of(attributes).frozen ? " frozen" : "");
}

}  // namespace

const OpDef bn_statistics_op = {.name = "bn_statistics",
                                .outputs = statistics_outputs,
                                .work = statistics_work,
                                .gradient = nullptr,
                                .reference = statistics_reference,
                                .text = nullptr};

const OpDef bn_update_running_op = {.name = "bn_update_running",
                                    .outputs = update_outputs,
                                    .work = update_work,
                                    .gradient = nullptr,
                                    .reference = update_reference,
                                    .text = momentum_text,
                                    .wide_inputs = 0b1111};

const OpDef bn_apply_op = {.name = "bn_apply",
                           .outputs = apply_outputs,
                           .work = apply_work,
                           .gradient = apply_gradient,
                           .reference = apply_reference,
                           .text = epsilon_text,
                           .wide_inputs = 0b11110};

const OpDef bn_backward_reduce_op = {.name = "bn_backward_reduce",
                                     .outputs = reduce_outputs,
                                     .work = reduce_work,
                                     .gradient = nullptr,
                                     .reference = reduce_reference,
                                     .text = epsilon_text,
                                     .wide_inputs = 0b1100};

const OpDef bn_backward_apply_op = {.name = "bn_backward_apply",
                                    .outputs = backward_apply_outputs,
                                    .work = backward_apply_work,
                                    .gradient = nullptr,
                                    .reference = backward_apply_reference,
                                    .text = backward_apply_text,
                                    .wide_inputs = 0b1111100};

}  // namespace ridgeline
