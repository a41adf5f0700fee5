#pragma once

// Computes ops whose inputs are all known when a network is imported: shapes and what is reckoned
// with them, transposed weights, scalars.

#include <optional>
#include <span>
#include <vector>

#include "onnx/file.h"

namespace ridgeline::onnx {

// Elements that folding may still make; a file may ask for any number of them.
struct FoldBudget {
  std::int64_t elements = std::int64_t{1} << 18;
};

[[nodiscard]] bool can_fold(const OpNode& node);

// The outputs of a node; null inputs are left out. Throws bad_input where they do not fit together
// or the budget is spent. REQUIRES: can_fold(node).
[[nodiscard]] std::vector<Array> fold(const OpNode& node, std::span<const Array* const> inputs,
                                      FoldBudget& budget);

// The same elements under other dimensions. REQUIRES: as many elements.
[[nodiscard]] Array with_dims(Array array, Dims dims);
[[nodiscard]] Array transposed(const Array& array, std::span<const std::int64_t> order);

// An axis counted from the end made one counted from the start; bad_input when there is none.
[[nodiscard]] std::size_t axis_of(std::int64_t axis, std::size_t rank);
// What a Reshape's target means for a value: 0 copies a dimension, -1 is what is left.
[[nodiscard]] Dims reshaped(std::span<const std::int64_t> dims,
                            std::span<const std::int64_t> target, bool allow_zero);
// Axes of Squeeze, Unsqueeze, ReduceMean and the like: an attribute, or an input in later opsets.
[[nodiscard]] std::optional<Dims> axes_of(const OpNode& node, const Array* input);
[[nodiscard]] Dims squeezed(const Dims& dims, const std::optional<Dims>& axes);
[[nodiscard]] Dims unsqueezed(const Dims& dims, const Dims& axes);

// What a Slice takes along one axis of a size: `count` elements from `begin`, `step` apart.
struct SliceRange {
  std::size_t axis = 0;
  std::int64_t begin = 0, count = 0, step = 1;
};
// Constants are the inputs of a Slice behind the data. Bad_input where they do not fit the dims.
[[nodiscard]] std::vector<SliceRange> slice_ranges(const OpNode& node, const Dims& dims,
                                                   std::span<const Array* const> constants);

// Sizes of the parts of a Split along an axis of a size; `parts` is the input or null.
[[nodiscard]] Dims split_sizes(const OpNode& node, std::int64_t size, const Array* parts);

}  // namespace ridgeline::onnx
