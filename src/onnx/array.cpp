#include "onnx/array.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/error.h"
#include "base/half.h"
#include "base/parse.h"

namespace ridgeline::onnx {
namespace {

static_assert(std::endian::native == std::endian::little, "ONNX's raw data is little-endian");

// A number as a whole one; what lies beyond goes to the nearest limit.
template <typename T>
T whole(double value) {
  if (std::isnan(value)) return 0;
  constexpr T least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
  if (value <= static_cast<double>(least)) return least;
  if (value >= static_cast<double>(most)) return most;
  return static_cast<T>(value);
}

// Calls `visit` with a value of the element type.
template <typename Visit>
auto with_type(ElementType type, Visit&& visit) {
  switch (type) {
    case ElementType::float32:
      return visit(float{});
    case ElementType::float64:
      return visit(double{});
    case ElementType::float16:
      return visit(Float16{});
    case ElementType::bfloat16:
      return visit(BFloat16{});
    case ElementType::boolean:
    case ElementType::uint8:
      return visit(std::uint8_t{});
    case ElementType::int8:
      return visit(std::int8_t{});
    case ElementType::uint16:
      return visit(std::uint16_t{});
    case ElementType::int16:
      return visit(std::int16_t{});
    case ElementType::int32:
      return visit(std::int32_t{});
    case ElementType::uint32:
      return visit(std::uint32_t{});
    case ElementType::int64:
      return visit(std::int64_t{});
    case ElementType::uint64:
      return visit(std::uint64_t{});
  }
  bad_input("element type {} is not understood", static_cast<int>(type));
}

template <typename To, typename From>
To converted(From value) {
  if constexpr (std::integral<From> && std::same_as<To, std::int64_t>) {
    if constexpr (std::same_as<From, std::uint64_t>) {
      constexpr auto most = std::numeric_limits<std::int64_t>::max();
      return value > static_cast<std::uint64_t>(most) ? most : static_cast<std::int64_t>(value);
    }
    return static_cast<std::int64_t>(value);
  } else if constexpr (std::integral<From>) {
    return static_cast<To>(value);
  } else if constexpr (std::same_as<To, std::int64_t>) {
    return whole<std::int64_t>(widened(value));
  } else {
    return widened(value);
  }
}

template <typename To>
std::vector<To> read_as(const Array& array) {
  return with_type(array.type, [&]<typename From>(From) {
    std::vector<To> values(array.bytes.size() / sizeof(From));
    for (std::size_t i = 0; i < values.size(); ++i) {
      From element;
      std::memcpy(&element, array.bytes.data() + i * sizeof(From), sizeof(From));
      values[i] = converted<To>(element);
    }
    return values;
  });
}

}  // namespace

std::string_view name_of(ElementType type) {
  static constexpr std::array<std::string_view, 17> kNames = {
      "?",       "float32", "uint8",   "int8",   "uint16", "int16", "int32", "int64",   "?",
      "boolean", "float16", "float64", "uint32", "uint64", "?",     "?",     "bfloat16"};
  const auto number = static_cast<std::size_t>(type);
  return number < kNames.size() ? kNames[number] : "?";
}

bool is_known(ElementType type) { return name_of(type) != "?"; }

bool is_real(ElementType type) {
  return type == ElementType::float32 || type == ElementType::float64 ||
         type == ElementType::float16 || type == ElementType::bfloat16;
}

std::size_t size_of(ElementType type) {
  if (!is_known(type)) return 0;
  return with_type(type, [](auto value) { return sizeof(value); });
}

std::int64_t elements_of(std::span<const std::int64_t> dims) {
  const std::optional<std::int64_t> elements = checked_elements(dims);
  ensure(elements.has_value(), "dimensions {} were not checked", dims_text(dims));
  return *elements;
}

std::vector<double> Array::numbers() const { return read_as<double>(*this); }

std::vector<std::int64_t> Array::integers() const { return read_as<std::int64_t>(*this); }

std::optional<double> Array::number() const {
  if (elements() != 1) return std::nullopt;
  const double value = numbers()[0];
  return type == ElementType::float32 ? decimal_of(static_cast<float>(value)) : value;
}

double decimal_of(float value) {
  if (!std::isfinite(value)) return value;
  return number_in<double>(fmt::format("{}", value)).value_or(value);
}

Array make_array(std::string name, ElementType type, Dims dims, std::span<const double> numbers) {
  ensure(elements_of(dims) == std::ssize(numbers), "{} numbers for {}", numbers.size(),
         dims_text(dims));
  auto bytes = std::make_shared<std::vector<std::byte>>(numbers.size() * size_of(type));
  with_type(type, [&]<typename To>(To) {
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      To element{};
      if constexpr (std::integral<To>) {
        element = whole<To>(numbers[i]);
      } else {
        element = narrowed<To>(numbers[i]);
      }
      std::memcpy(bytes->data() + i * sizeof(To), &element, sizeof(To));
    }
  });
  return {std::move(name), type, std::move(dims), *bytes, bytes};
}

Array make_integers(std::string name, Dims dims, std::span<const std::int64_t> integers) {
  ensure(elements_of(dims) == std::ssize(integers), "{} numbers for {}", integers.size(),
         dims_text(dims));
  auto owned = std::make_shared<std::vector<std::int64_t>>(integers.begin(), integers.end());
  return {std::move(name), ElementType::int64, std::move(dims), std::as_bytes(std::span(*owned)),
          owned};
}

}  // namespace ridgeline::onnx
