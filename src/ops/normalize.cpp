#include "ops/normalize.h"

#include <fmt/core.h>

#include "base/error.h"
#include "base/philox.h"
#include "ops/op.h"
#include "ops/reference.h"
#include "ops/work.h"

namespace ridgeline {

bool flips(std::uint64_t seed, std::int64_t epoch, std::int64_t sample) {
  const PhiloxBlock block =
      philox(stream_key(seed, RandomStream::augmentation), static_cast<std::uint64_t>(sample),
             static_cast<std::uint64_t>(epoch));
  return block[0] % 2 == 1;
}

namespace {

std::vector<OutputSpec> outputs(const Attributes& attributes, std::span<const TensorSpec> inputs) {
  const auto& a = std::get<NormalizeAttributes>(attributes);
  const TensorSpec& pixels = inputs[0];
  if (pixels.shape.rank() != 4 || pixels.dtype != DType::u8) {
    bad_input("normalize: pixels {} {} must be (N, C, H, W) of u8", pixels.shape.text(),
              name_of(pixels.dtype));
  }
  const auto channels = static_cast<std::size_t>(pixels.shape[1]);
  if (a.mean.size() != channels || a.deviation.size() != channels) {
    bad_input("normalize: pixels {} need {} means and deviations, not {} and {}",
              pixels.shape.text(), channels, a.mean.size(), a.deviation.size());
  }
  for (const double deviation : a.deviation) {
    if (!(deviation > 0.0)) bad_input("normalize: deviation {} must be positive", deviation);
  }
  if (inputs.size() != (a.flip ? 2 : 1)) {
    bad_input("normalize: {} inputs; pixels, and with flip the sample numbers", inputs.size());
  }
  if (a.flip && inputs[1] != TensorSpec{Shape{pixels.shape[0]}, DType::i32}) {
    bad_input("normalize: sample numbers {} {} must be ({}) of i32", inputs[1].shape.text(),
              name_of(inputs[1].dtype), pixels.shape[0]);
  }
  return {{{pixels.shape, a.dtype}}};
}

// A multiplication and an addition, with constants made beforehand.
Cost work(const Attributes&, std::span<const TensorSpec> inputs, std::span<const OutputSpec>) {
  return elementwise(inputs[0].shape.elements(), 2);
}

template <typename T>
void forward(const OpCall& call) {
  const auto& a = std::get<NormalizeAttributes>(call.attributes);
  const Elements<std::uint8_t> pixels(call.inputs[0]);
  const Elements<T> dst(call.outputs[0]);
  const Shape& shape = call.outputs[0].shape();
  for (std::int64_t n = 0; n < shape[0]; ++n) {
    const bool mirrored = a.flip && flips(call.state.seed, call.state.epoch,
                                          Elements<std::int32_t>(call.inputs[1])(n));
    for_each_index(Shape{1, shape[1], shape[2], shape[3]}, [&](auto, auto c, auto h, auto w) {
      const auto channel = static_cast<std::size_t>(c);
      const double pixel = pixels(n, c, h, mirrored ? shape[3] - 1 - w : w);
      dst(n, c, h, w) = static_cast<T>((pixel / 255.0 - a.mean[channel]) / a.deviation[channel]);
    });
  }
}

void reference(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype, [&](auto type) { forward<decltype(type)>(call); });
}

std::string list_text(const std::vector<double>& numbers) {
  std::string list;
  for (const double number : numbers) list += fmt::format("{}{}", list.empty() ? "" : ",", number);
  return list;
}

std::string text(const Attributes& attributes) {
  const auto& a = std::get<NormalizeAttributes>(attributes);
  return fmt::format("mean{} deviation{}{} {}", list_text(a.mean), list_text(a.deviation),
                     a.flip ? " flip" : "", name_of(a.dtype));
}

}  // namespace

const OpDef normalize_op = {.name = "normalize",
                            .outputs = outputs,
                            .work = work,
                            .gradient = nullptr,
                            .reference = reference,
                            .text = text};

}  // namespace ridgeline
