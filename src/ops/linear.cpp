#include "ops/linear.h"

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {
namespace {

std::vector<OutputSpec> forward_outputs(const Attributes&, std::span<const TensorSpec> inputs) {
  const Shape& src = inputs[0].shape;
  const Shape& weights = inputs[1].shape;
  if (src.rank() != 2 || weights.rank() != 2 || src[1] != weights[1]) {
    bad_input("linear: src {} does not fit weights {}; src must be (N, K), weights (M, K)",
              src.text(), weights.text());
  }
  return {{{Shape{src[0], weights[0]}, inputs[0].dtype}}};
}

std::vector<OutputSpec> backward_data_outputs(const Attributes&,
                                              std::span<const TensorSpec> inputs) {
  const Shape& diff_dst = inputs[0].shape;
  const Shape& weights = inputs[1].shape;
  if (diff_dst.rank() != 2 || weights.rank() != 2 || diff_dst[1] != weights[0]) {
    bad_input(
        "linear_backward_data: diff_dst {} does not fit weights {}; they must be (N, M), (M, K)",
        diff_dst.text(), weights.text());
  }
  return {{{Shape{diff_dst[0], weights[1]}, inputs[0].dtype}}};
}

std::vector<OutputSpec> backward_weights_outputs(const Attributes&,
                                                 std::span<const TensorSpec> inputs) {
  const Shape& src = inputs[0].shape;
  const Shape& diff_dst = inputs[1].shape;
  if (src.rank() != 2 || diff_dst.rank() != 2 || src[0] != diff_dst[0]) {
    bad_input(
        "linear_backward_weights: src {} does not fit diff_dst {}; they must be (N, K), (N, M)",
        src.text(), diff_dst.text());
  }
  return {{{Shape{diff_dst[1], src[1]}, inputs[0].dtype}}};
}

Cost forward_work(const Attributes&, std::span<const TensorSpec> inputs,
                  std::span<const OutputSpec>) {
  return products(inputs[0].shape.elements() * inputs[1].shape[0]);
}

Cost backward_data_work(const Attributes&, std::span<const TensorSpec> inputs,
                        std::span<const OutputSpec>) {
  return products(inputs[0].shape.elements() * inputs[1].shape[1]);
}

Cost backward_weights_work(const Attributes&, std::span<const TensorSpec> inputs,
                           std::span<const OutputSpec>) {
  return products(inputs[0].shape.elements() * inputs[1].shape[1]);
}

void gradient(GradientContext& context) {
  const ValueId src = context.input(0), weights = context.input(1);
  const ValueId diff_dst = context.diff_output(0);
  if (context.wanted(1)) {
    context.give(1, context.emit(OpKind::linear_backward_weights, {}, {src, diff_dst},
                                 Phase::backward_weights)[0]);
  }
  if (context.wanted(0)) {
    context.give(0, context.emit(OpKind::linear_backward_data, {}, {diff_dst, weights},
                                 Phase::backward_data)[0]);
  }
}

template <typename T>
void forward(const Tensor& src_tensor, const Tensor& weights_tensor, const Tensor& dst_tensor) {
  const Elements<T> src(src_tensor), weights(weights_tensor), dst(dst_tensor);
  const std::int64_t rows = src_tensor.shape()[0], depth = src_tensor.shape()[1];
  parallel_for(weights_tensor.shape()[0], 1, [&](auto begin, auto end) {
    for (std::int64_t m = begin; m < end; ++m) {
      for (std::int64_t n = 0; n < rows; ++n) {
        double sum = 0;
        for (std::int64_t k = 0; k < depth; ++k) sum += double{src(n, k)} * weights(m, k);
        dst(n, m) = static_cast<T>(sum);
      }
    }
  });
}

template <typename T>
void backward_data(const Tensor& diff_dst_tensor, const Tensor& weights_tensor,
                   const Tensor& diff_src_tensor) {
  const Elements<T> diff_dst(diff_dst_tensor), weights(weights_tensor), diff_src(diff_src_tensor);
  // Row by row of the weights, as they lie in memory.
  parallel_for(diff_src_tensor.shape()[1], 1, [&](auto begin, auto end) {
    thread_local std::vector<double> sums;  // kept: a step allocates nothing
    for (std::int64_t n = 0; n < diff_src_tensor.shape()[0]; ++n) {
      sums.assign(static_cast<std::size_t>(end - begin), 0.0);
      for (std::int64_t m = 0; m < weights_tensor.shape()[0]; ++m) {
        for (std::int64_t k = begin; k < end; ++k) {
          sums[static_cast<std::size_t>(k - begin)] += double{diff_dst(n, m)} * weights(m, k);
        }
      }
      for (std::int64_t k = begin; k < end; ++k) {
        diff_src(n, k) = static_cast<T>(sums[static_cast<std::size_t>(k - begin)]);
      }
    }
  });
}

template <typename T>
void backward_weights(const Tensor& src_tensor, const Tensor& diff_dst_tensor,
                      const Tensor& diff_weights_tensor) {
  const Elements<T> src(src_tensor), diff_dst(diff_dst_tensor), diff_weights(diff_weights_tensor);
  parallel_for(diff_weights_tensor.shape()[0], 1, [&](auto begin, auto end) {
    for (std::int64_t m = begin; m < end; ++m) {
      for (std::int64_t k = 0; k < diff_weights_tensor.shape()[1]; ++k) {
        double sum = 0;
        for (std::int64_t n = 0; n < src_tensor.shape()[0]; ++n)
          sum += double{diff_dst(n, m)} * src(n, k);
        diff_weights(m, k) = static_cast<T>(sum);
      }
    }
  });
}

void forward_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    forward<decltype(type)>(call.inputs[0], call.inputs[1], call.outputs[0]);
  });
}

void backward_data_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    backward_data<decltype(type)>(call.inputs[0], call.inputs[1], call.outputs[0]);
  });
}

void backward_weights_reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) {
    backward_weights<decltype(type)>(call.inputs[0], call.inputs[1], call.outputs[0]);
  });
}

}  // namespace

const OpDef linear_op = {.name = "linear",
                         .outputs = forward_outputs,
                         .work = forward_work,
                         .gradient = gradient,
                         .reference = forward_reference,
                         .text = nullptr};

const OpDef linear_backward_data_op = {.name = "linear_backward_data",
                                       .outputs = backward_data_outputs,
                                       .work = backward_data_work,
                                       .gradient = nullptr,
                                       .reference = backward_data_reference,
                                       .text = nullptr};

const OpDef linear_backward_weights_op = {.name = "linear_backward_weights",
                                          .outputs = backward_weights_outputs,
                                          .work = backward_weights_work,
                                          .gradient = nullptr,
                                          .reference = backward_weights_reference,
                                          .text = nullptr};

}  // namespace ridgeline
