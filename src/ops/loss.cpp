#include "ops/loss.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {
namespace {

const LossAttributes& loss_of(const Attributes& attributes) {
  return std::get<LossAttributes>(attributes);
}

void check_rows(std::string_view op, const TensorSpec& rows, const TensorSpec& labels) {
  if (rows.shape.rank() != 2 || rows.shape[1] < 1 ||
      labels != TensorSpec{Shape{rows.shape[0]}, DType::i32}) {
    bad_input("{}: {} {} does not fit labels {} {}; they must be (N, classes) and (N) of i32", op,
              rows.shape.text(), name_of(rows.dtype), labels.shape.text(), name_of(labels.dtype));
  }
}

void check_smoothing(std::string_view op, const LossAttributes& a) {
  if (!(a.label_smoothing >= 0.0 && a.label_smoothing <= 1.0)) {
    bad_input("{}: label smoothing must be between 0 and 1, and is {}", op, a.label_smoothing);
  }
}

std::vector<OutputSpec> forward_outputs(const Attributes& attributes,
                                        std::span<const TensorSpec> inputs) {
  check_smoothing("softmax_cross_entropy", loss_of(attributes));
  check_rows("softmax_cross_entropy", inputs[0], inputs[1]);
  return {{{Shape{}, inputs[0].dtype}}, {inputs[0]}};
}

std::vector<OutputSpec> backward_outputs(const Attributes& attributes,
                                         std::span<const TensorSpec> inputs) {
  check_smoothing("softmax_cross_entropy_backward", loss_of(attributes));
  check_rows("softmax_cross_entropy_backward", inputs[0], inputs[1]);
  return {{inputs[0]}};
}

std::vector<OutputSpec> metrics_outputs(const Attributes&, std::span<const TensorSpec> inputs) {
  if (inputs[0] != TensorSpec{Shape{4}, DType::f64}) {
    bad_input("metrics: totals {} {} must be (4) of f64", inputs[0].shape.text(),
              name_of(inputs[0].dtype));
  }
  if (inputs[1].shape.rank() != 0) {
    bad_input("metrics: loss {} must be a scalar", inputs[1].shape.text());
  }
  check_rows("metrics", inputs[2], inputs[3]);
  return {{inputs[0], 0}};
}

// For each logit: largest, difference, exp, sum, division; smoothing sums the logarithms too.
Cost forward_work(const Attributes& attributes, std::span<const TensorSpec> inputs,
                  std::span<const OutputSpec>) {
  const bool smooth = loss_of(attributes).label_smoothing > 0.0;
  return elementwise(inputs[0].shape.elements(), smooth ? 6 : 5);
}

Cost backward_work(const Attributes&, std::span<const TensorSpec> inputs,
                   std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), 2);
}

Cost metrics_work(const Attributes&, std::span<const TensorSpec> inputs,
                  std::span<const OutputSpec>) {
  return elementwise(inputs[2].shape.elements(), 1);
}

void gradient(GradientContext& context) {
  ensure(context.diff_output(0) == kNoValue, "the loss must be the end of the graph");
  if (!context.wanted(0)) return;
  context.give(0, context.emit(OpKind::softmax_cross_entropy_backward, context.attributes(),
                               {context.output(1), context.input(1)}, Phase::backward_data)[0]);
}

std::int64_t label_at(const Tensor& labels, std::int64_t row, std::int64_t classes) {
  const std::int64_t label = Elements<std::int32_t>(labels)(row);
  ensure(label >= 0 && label < classes, "label {} of row {} is not one of {} classes", label, row,
         classes);
  return label;
}

std::int64_t valid_rows(const StepState& state, const Shape& logits) {
  return std::min(state.valid_rows, logits[0]);
}

template <typename T>
void forward(const OpCall& call) {
  const Elements<T> logits(call.inputs[0]), probabilities(call.outputs[1]);
  const Shape& shape = call.inputs[0].shape();
  const std::int64_t rows = shape[0], classes = shape[1];
  const std::int64_t valid = valid_rows(call.state, shape);
  const double smoothing = loss_of(call.attributes).label_smoothing;
  double loss = 0;
  for (std::int64_t n = 0; n < rows; ++n) {
    double largest = logits(n, 0);
    for (std::int64_t k = 1; k < classes; ++k) largest = std::max<double>(largest, logits(n, k));
    double sum = 0, logit_sum = 0;
    for (std::int64_t k = 0; k < classes; ++k) {
      sum += std::exp(logits(n, k) - largest);
      logit_sum += logits(n, k);
    }
    const double log_sum = largest + std::log(sum);  // logits minus this are log-probabilities
    if (call.outputs[1].data != nullptr) {
      for (std::int64_t k = 0; k < classes; ++k) {
        probabilities(n, k) = static_cast<T>(std::exp(logits(n, k) - log_sum));
      }
    }
    if (n < valid) {
      const double of_label = log_sum - logits(n, label_at(call.inputs[1], n, classes));
      const double of_all = log_sum - logit_sum / static_cast<double>(classes);
      loss += (1 - smoothing) * of_label + (smoothing > 0 ? smoothing * of_all : 0);
    }
  }
  if (call.outputs[0].data != nullptr) {
    const double mean = valid == 0 ? 0.0 : loss / static_cast<double>(valid);
    const double weight = loss_of(call.attributes).weight;
    Elements<T>(call.outputs[0]).flat(0) = static_cast<T>(weight * mean);
  }
}

template <typename T>
void backward(const OpCall& call) {
  const Elements<T> probabilities(call.inputs[0]), diff_logits(call.outputs[0]);
  const Shape& shape = call.inputs[0].shape();
  const std::int64_t rows = shape[0], classes = shape[1];
  const std::int64_t valid = valid_rows(call.state, shape);
  const double smoothing = loss_of(call.attributes).label_smoothing;
  const double share = smoothing / static_cast<double>(classes);
  const double scale = call.state.loss_scale * loss_of(call.attributes).weight;
  for (std::int64_t n = 0; n < rows; ++n) {
    const std::int64_t label = n < valid ? label_at(call.inputs[1], n, classes) : -1;
    for (std::int64_t k = 0; k < classes; ++k) {
      if (n >= valid) {
        diff_logits(n, k) = 0;
        continue;
      }
      const double target = share + (k == label ? 1 - smoothing : 0);
      diff_logits(n, k) =
          static_cast<T>((probabilities(n, k) - target) * scale / static_cast<double>(valid));
    }
  }
}

// How many logits come before the label's: greater ones, and of equal ones those of lower index, as
// an argmax sees it. A NaN is never beaten.
template <typename T>
std::int64_t rank_of_label(const Elements<T>& logits, std::int64_t row, std::int64_t label,
                           std::int64_t classes) {
  std::int64_t rank = 0;
  for (std::int64_t k = 0; k < classes; ++k) {
    const bool beaten =
        k < label ? logits(row, label) > logits(row, k) : logits(row, label) >= logits(row, k);
    if (k != label && !beaten) ++rank;
  }
  return rank;
}

template <typename T>
void metrics(const OpCall& call) {
  const Elements<double> totals(call.inputs[0]), updated(call.outputs[0]);
  const Elements<T> logits(call.inputs[2]);
  const Shape& shape = call.inputs[2].shape();
  const std::int64_t valid = valid_rows(call.state, shape);
  double top1 = 0, top5 = 0;
  for (std::int64_t n = 0; n < valid; ++n) {
    const std::int64_t label = label_at(call.inputs[3], n, shape[1]);
    const std::int64_t rank = rank_of_label(logits, n, label, shape[1]);
    if (rank < 1) ++top1;
    if (rank < 5) ++top5;
  }
  const auto rows = static_cast<double>(valid);
  updated(0) = totals(0) + Elements<T>(call.inputs[1]).flat(0) * rows;
  updated(1) = totals(1) + top1;
  updated(2) = totals(2) + top5;
  updated(3) = totals(3) + rows;
}

void forward_reference(const OpCall& call) {
  with_float_type(call.inputs[0].spec.dtype, [&](auto type) { forward<decltype(type)>(call); });
}

void backward_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) { backward<decltype(type)>(call); });
}

void metrics_reference(const OpCall& call) {
  with_float_type(call.inputs[2].spec.dtype, [&](auto type) { metrics<decltype(type)>(call); });
}

std::string text(const Attributes& attributes) {
  const LossAttributes& a = loss_of(attributes);
  const std::string weight = a.weight == 1.0 ? "" : fmt::format(" weight{}", a.weight);
  return fmt::format("smoothing{}{}", a.label_smoothing, weight);
}

}  // namespace

const OpDef softmax_cross_entropy_op = {.name = "softmax_cross_entropy",
                                        .outputs = forward_outputs,
                                        .work = forward_work,
                                        .gradient = gradient,
                                        .reference = forward_reference,
                                        .text = text,
                                        .wide_inputs = 0b1};

const OpDef softmax_cross_entropy_backward_op = {.name = "softmax_cross_entropy_backward",
                                                 .outputs = backward_outputs,
                                                 .work = backward_work,
                                                 .gradient = nullptr,
                                                 .reference = backward_reference,
                                                 .text = text,
                                                 .wide_inputs = 0b1};

const OpDef metrics_op = {.name = "metrics",
                          .outputs = metrics_outputs,
                          .work = metrics_work,
                          .gradient = nullptr,
                          .reference = metrics_reference,
                          .text = nullptr,
                          .wide_inputs = 0b110};

}  // namespace ridgeline
