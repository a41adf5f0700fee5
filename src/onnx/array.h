#pragma once

// Tensors of an ONNX file: initializers, constants, and what is computed from them at import.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dims.h"

namespace ridgeline::onnx {

// TensorProto.DataType; the types whose elements we can read.
enum class ElementType : std::int32_t {
  float32 = 1,
  uint8 = 2,
  int8 = 3,
  uint16 = 4,
  int16 = 5,
  int32 = 6,
  int64 = 7,
  boolean = 9,
  float16 = 10,
  float64 = 11,
  uint32 = 12,
  uint64 = 13,
  bfloat16 = 16,
};
[[nodiscard]] std::string_view name_of(ElementType type);  // "?" for a type that is none of these
[[nodiscard]] bool is_known(ElementType type);
[[nodiscard]] bool is_real(ElementType type);
[[nodiscard]] std::size_t size_of(ElementType type);  // 0 for a type that is not known

using Dims = std::vector<std::int64_t>;
// REQUIRES: checked_elements(dims) gives something.
[[nodiscard]] std::int64_t elements_of(std::span<const std::int64_t> dims);

// A view on bytes that `owner` keeps: row-major, little-endian, at any alignment.
struct Array {
  std::string name;
  ElementType type = ElementType::float32;
  Dims dims;
  std::span<const std::byte> bytes;
  std::shared_ptr<const void> owner;

  [[nodiscard]] std::int64_t elements() const { return elements_of(dims); }
  // The elements as doubles: exact for all but whole numbers beyond 2^53.
  [[nodiscard]] std::vector<double> numbers() const;
  // The elements as whole numbers, the nearest int64 where one is none.
  [[nodiscard]] std::vector<std::int64_t> integers() const;
  // Of an array with one element. A float is the shortest decimal number that it stands for.
  [[nodiscard]] std::optional<double> number() const;
};

// 1e-5 of the float next to it: what was written down before it became a float.
[[nodiscard]] double decimal_of(float value);

// An array of its own, elements rounded to the type. REQUIRES: as many numbers as dims ask for.
[[nodiscard]] Array make_array(std::string name, ElementType type, Dims dims,
                               std::span<const double> numbers);
[[nodiscard]] Array make_integers(std::string name, Dims dims,
                                  std::span<const std::int64_t> integers);

}  // namespace ridgeline::onnx
