#include "backends/native/row_space.h"

#include <algorithm>
#include <numeric>

#include "base/bf16_unit.h"
#include "base/error.h"

namespace ridgeline::native {
namespace {

// Divides every vector width, so that each row of a flat space starts at a full vector.
constexpr std::int64_t kLaneMultiple = 16;
constexpr std::int64_t kShortestFlatRow = 64;
constexpr std::int64_t kLongestPeriod = 4096;
constexpr std::int64_t kElementRow = 2048;
constexpr std::int64_t kElementsPerThread = 16384;

bool all_dense(std::initializer_list<const Tensor*> tensors) {
  return std::all_of(tensors.begin(), tensors.end(),
                     [](const Tensor* tensor) { return rows_of(*tensor).dense(); });
}

RowSpace flat_space(const Tensor& tensor, std::int64_t width) {
  const std::int64_t elements = tensor.shape().elements();
  const std::int64_t rows = (elements + width - 1) / width;
  return {rows, width, elements - (rows - 1) * width, true, tensor.spec.dtype};
}

RowSpace own_rows(const Tensor& tensor) {
  const RowView view = rows_of(tensor);
  return {view.rows, view.width, view.width, false, tensor.spec.dtype};
}

}  // namespace

RowView rows_of(const Tensor& tensor) {
  const Shape& shape = tensor.shape();
  const Strides& strides = tensor.strides;
  RowView view{tensor.data, 1, shape.elements(), shape.elements()};
  if (shape.rank() < 2) return view;
  if (tensor.layout.kind() == LayoutKind::nhwc) {
    view.rows = shape[0] * shape[2] * shape[3];
    view.width = shape[1];
    // The stride of an axis of length 1 says nothing.
    view.stride = shape[3] > 1 ? strides[3] : shape[2] > 1 ? strides[2] : strides[0];
  } else {
    view.rows = shape[0];
    view.width = shape[0] == 0 ? 0 : shape.elements() / shape[0];
    view.stride = strides[0];
  }
  if (view.rows <= 1) view.stride = view.width;
  return view;
}

RowOperand RowSpace::operand(const Tensor& tensor) const {
  const RowView view = rows_of(tensor);
  return {view.data, flat ? width : view.stride};
}

RowOperand operand_of(const Tensor& tensor) {
  const RowView view = rows_of(tensor);
  return {view.data, view.stride};
}

std::int64_t RowSpace::grain() const {
  return std::max<std::int64_t>(1, kElementsPerThread / std::max<std::int64_t>(1, width));
}

RowSpace element_space(std::initializer_list<const Tensor*> tensors) {
  const Tensor& first = **tensors.begin();
  if (!all_dense(tensors)) return own_rows(first);
  return flat_space(first, kElementRow);
}

RowSpace channel_space(std::initializer_list<const Tensor*> tensors) {
  const Tensor& first = **tensors.begin();
  const std::int64_t period = channel_period(first.shape()[1]);
  if (!all_dense(tensors) || first.shape().elements() < period) return own_rows(first);
  return flat_space(first, period);
}

std::int64_t channel_period(std::int64_t channels) {
  const std::int64_t period = std::lcm(channels, kLaneMultiple);
  if (period > kLongestPeriod) return channels;
  return period * ((kShortestFlatRow + period - 1) / period);
}

void repeat_channels(std::span<const float> values, std::int64_t width, float* row) {
  const auto channels = static_cast<std::int64_t>(values.size());
  for (std::int64_t i = 0; i < width; i += channels) {
    std::copy(values.begin(), values.end(), row + i);
  }
}

void repeat_first_channels(std::int64_t channels, std::int64_t width, float* row) {
  for (std::int64_t i = channels; i < width; i += channels) std::copy_n(row, channels, row + i);
}

int reduction_parts(std::int64_t elements) {
  return static_cast<int>(
      std::clamp<std::int64_t>(elements / kElementsPerThread, 1, thread_count()));
}

void PartialSums::clear(int p) const { std::fill_n(part(p), count * width, 0.0); }

double PartialSums::total(int index, std::int64_t channel, std::int64_t channels) const {
  double sum = 0.0;
  for (int p = 0; p < parts; ++p) {
    const double* row = part(p) + index * width;
    for (std::int64_t i = channel; i < width; i += channels) sum += row[i];
  }
  return sum;
}

std::string refuse_other_than_floats(const Problem& problem) {
  for (const std::vector<ValueId>* values : {&problem.inputs, &problem.outputs}) {
    for (const ValueId id : *values) {
      const DType dtype = problem.graph->value(id).spec.dtype;
      if (is_float(dtype) && dtype != DType::f32 && dtype != DType::bf16) {
        return fmt::format("native computes in f32 and bf16, not {}", name_of(dtype));
      }
    }
  }
  return {};
}

std::string refuse_product(const Problem& problem) {
  if (problem.input(0).dtype == DType::bf16) {
    if (std::string reason = refuse_bf16(); !reason.empty()) return reason;
  }
  return refuse_other_than_floats(problem);
}

std::vector<std::size_t> places_of(const Problem& problem) {
  std::vector<std::size_t> places;
  for (const ValueId input : problem.node().inputs) places.push_back(problem.input_index(input));
  return places;
}

Layout common_layout(const Problem& problem, std::span<const Layout> layouts) {
  const Layout* common = nullptr;
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    if (problem.input(i).shape.rank() != 4) continue;
    if (layouts[i].kind() == LayoutKind::own) return Layout::nhwc();
    if (common != nullptr && !(*common == layouts[i])) return Layout::nhwc();
    common = &layouts[i];
  }
  return common == nullptr ? Layout::nhwc() : *common;
}

}  // namespace ridgeline::native
