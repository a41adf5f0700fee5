#include "ops/layer_norm.h"

#include <cmath>

#include "base/error.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {
namespace {

const LayerNormAttributes& norm_of(const Attributes& attributes) {
  return std::get<LayerNormAttributes>(attributes);
}

void check_src(std::string_view op, const LayerNormAttributes& a, const TensorSpec& src) {
  const int rank = src.shape.rank();
  if ((rank != 2 && rank != 4) || src.shape.elements() == 0) {
    bad_input("{}: src {} must be (N, C) or (N, C, H, W), and not empty", op, src.shape.text());
  }
  if (a.groups < 0 || (a.groups > 0 && src.shape[1] % a.groups != 0)) {
    bad_input("{}: {} channels cannot be cut into {} groups", op, src.shape[1], a.groups);
  }
}

TensorSpec statistics_of(const LayerNormAttributes& a, const TensorSpec& src) {
  const DType type = wide_type(src.dtype);
  if (a.groups > 0) return {Shape{src.shape[0], a.groups}, type};
  if (src.shape.rank() == 2) return {Shape{src.shape[0], 1}, type};
  return {Shape{src.shape[0], 1, src.shape[2], src.shape[3]}, type};
}

TensorSpec channels_of(const TensorSpec& src) {
  return {Shape{src.shape[1]}, wide_type(src.dtype)};
}

void check_input(std::string_view op, std::span<const TensorSpec> inputs, std::size_t index,
                 const TensorSpec& expected) {
  if (inputs[index] == expected) return;
  bad_input("{}: input {} {} {} must be {} {}", op, index, inputs[index].shape.text(),
            name_of(inputs[index].dtype), expected.shape.text(), name_of(expected.dtype));
}

std::vector<OutputSpec> forward_outputs(const Attributes& attributes,
                                        std::span<const TensorSpec> inputs) {
  const LayerNormAttributes& a = norm_of(attributes);
  const TensorSpec& src = inputs[0];
  check_src("layer_norm", a, src);
  check_input("layer_norm", inputs, 1, channels_of(src));
  check_input("layer_norm", inputs, 2, channels_of(src));
  return {{src}, {statistics_of(a, src)}, {statistics_of(a, src)}};
}

std::vector<OutputSpec> backward_outputs(const Attributes& attributes,
                                         std::span<const TensorSpec> inputs) {
  const LayerNormAttributes& a = norm_of(attributes);
  const TensorSpec& src = inputs[1];
  check_src("layer_norm_backward", a, src);
  check_input("layer_norm_backward", inputs, 0, src);
  check_input("layer_norm_backward", inputs, 2, statistics_of(a, src));
  check_input("layer_norm_backward", inputs, 3, statistics_of(a, src));
  check_input("layer_norm_backward", inputs, 4, channels_of(src));
  return {{src}, {channels_of(src)}, {channels_of(src)}};
}

// 1 for the mean and 3 for the variance; difference, two products and the shift.
Cost forward_work(const Attributes&, std::span<const TensorSpec> inputs,
                  std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), 8);
}

// The normalised src 2; diff_scale 2, diff_shift 1; diff_dst * scale 1, its sums 3; diff_src 5.
Cost backward_work(const Attributes&, std::span<const TensorSpec> inputs,
                   std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), 14);
}

void gradient(GradientContext& context) {
  if (!context.wanted(0) && !context.wanted(1) && !context.wanted(2)) return;
  const std::vector<ValueId> gradients =
      context.emit(OpKind::layer_norm_backward, context.attributes(),
                   {context.diff_output(0), context.input(0), context.output(1), context.output(2),
                    context.input(1)},
                   Phase::backward_data);
  for (const std::size_t input : {0U, 1U, 2U}) {
    if (context.wanted(input)) context.give(input, gradients[input]);
  }
}

// One normalised set of elements, and where its statistics stand. Layer norm has one for each
// pixel, group norm one for each group of a sample.
struct NormSet {
  std::int64_t n, first_channel, channels, h, height, w, width;
  std::int64_t statistics;  // position, row-major

  [[nodiscard]] double count() const { return static_cast<double>(channels * height * width); }
  template <typename Body>
  void each(Body&& body) const {
    for (std::int64_t c = first_channel; c < first_channel + channels; ++c) {
      for (std::int64_t y = h; y < h + height; ++y) {
        for (std::int64_t x = w; x < w + width; ++x) body(n, c, y, x);
      }
    }
  }
};

template <typename Body>
void for_each_set(const LayerNormAttributes& a, const Shape& shape, Body&& body) {
  const std::int64_t height = shape.height(), width = shape.width();
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    for (std::int64_t group = 0; group < a.groups; ++group) {
      const std::int64_t channels = shape[1] / a.groups;
      body(NormSet{n, group * channels, channels, 0, height, 0, width, n * a.groups + group});
    }
    for (std::int64_t h = 0; a.groups == 0 && h < height; ++h) {
      for (std::int64_t w = 0; w < width; ++w) {
        body(NormSet{n, 0, shape[1], h, 1, w, 1, (n * height + h) * width + w});
      }
    }
  }
}

template <typename T>
void forward(const OpCall& call) {
  const LayerNormAttributes& a = norm_of(call.attributes);
  const Elements<T> src(call.inputs[0]), scale(call.inputs[1]), shift(call.inputs[2]);
  const Elements<T> dst(call.outputs[0]);
  for_each_set(a, call.inputs[0].shape(), [&](const NormSet& set) {
    double sum = 0.0, squares = 0.0;
    set.each([&](auto n, auto c, auto h, auto w) { sum += src(n, c, h, w); });
    const double mean = sum / set.count();
    set.each([&](auto n, auto c, auto h, auto w) {
      const double difference = src(n, c, h, w) - mean;
      squares += difference * difference;
    });
    const double inverse = 1.0 / std::sqrt(squares / set.count() + a.epsilon);
    set.each([&](auto n, auto c, auto h, auto w) {
      dst(n, c, h, w) = static_cast<T>((src(n, c, h, w) - mean) * inverse * scale(c) + shift(c));
    });
    if (call.outputs[1].data != nullptr) {
      Elements<T>(call.outputs[1]).flat(set.statistics) = static_cast<T>(mean);
    }
    if (call.outputs[2].data != nullptr) {
      Elements<T>(call.outputs[2]).flat(set.statistics) = static_cast<T>(inverse);
    }
  });
}

// With normal = (src - mean) * inverse and g = diff_dst * scale:
// diff_src = (g - mean of g - normal * mean of (g * normal)) * inverse.
template <typename T>
void backward(const OpCall& call) {
  const LayerNormAttributes& a = norm_of(call.attributes);
  const Elements<T> diff_dst(call.inputs[0]), src(call.inputs[1]), means(call.inputs[2]);
  const Elements<T> inverses(call.inputs[3]), scale(call.inputs[4]);
  const Shape& shape = call.inputs[1].shape();
  const auto channels = static_cast<std::size_t>(shape[1]);
  std::vector<double> diff_scale(channels), diff_shift(channels);
  for_each_set(a, shape, [&](const NormSet& set) {
    const double mean = means.flat(set.statistics), inverse = inverses.flat(set.statistics);
    double sum = 0.0, products = 0.0;
    set.each([&](auto n, auto c, auto h, auto w) {
      const double normal = (src(n, c, h, w) - mean) * inverse, diff = diff_dst(n, c, h, w);
      diff_scale[static_cast<std::size_t>(c)] += diff * normal;
      diff_shift[static_cast<std::size_t>(c)] += diff;
      sum += diff * scale(c);
      products += diff * scale(c) * normal;
    });
    if (call.outputs[0].data == nullptr) return;
    const Elements<T> diff_src(call.outputs[0]);
    set.each([&](auto n, auto c, auto h, auto w) {
      const double normal = (src(n, c, h, w) - mean) * inverse;
      const double g = double{diff_dst(n, c, h, w)} * scale(c);
      diff_src(n, c, h, w) =
          static_cast<T>((g - (sum + normal * products) / set.count()) * inverse);
    });
  });
  const auto write = [&](const Tensor& tensor, const std::vector<double>& sums) {
    if (tensor.data == nullptr) return;
    const Elements<T> elements(tensor);
    for (std::int64_t c = 0; c < shape[1]; ++c) {
      elements(c) = static_cast<T>(sums[static_cast<std::size_t>(c)]);
    }
  };
  write(call.outputs[1], diff_scale);
  write(call.outputs[2], diff_shift);
}

void forward_reference(const OpCall& call) {
  with_float_type(call.inputs[0].spec.dtype, [&](auto type) { forward<decltype(type)>(call); });
}

void backward_reference(const OpCall& call) {
  with_float_type(call.inputs[1].spec.dtype, [&](auto type) { backward<decltype(type)>(call); });
}

std::string text(const Attributes& attributes) {
  const LayerNormAttributes& a = norm_of(attributes);
  return fmt::format("g{} eps{}", a.groups, a.epsilon);
}

}  // namespace

const OpDef layer_norm_op = {.name = "layer_norm",
                             .outputs = forward_outputs,
                             .work = forward_work,
                             .gradient = gradient,
                             .reference = forward_reference,
                             .text = text,
                             .wide_inputs = 0b110};

const OpDef layer_norm_backward_op = {.name = "layer_norm_backward",
                                      .outputs = backward_outputs,
                                      .work = backward_work,
                                      .gradient = nullptr,
                                      .reference = backward_reference,
                                      .text = text,
                                      .wide_inputs = 0b11100};

}  // namespace ridgeline
