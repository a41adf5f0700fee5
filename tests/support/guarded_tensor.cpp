#include "support/guarded_tensor.h"

#include <algorithm>
#include <cstring>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

namespace ridgeline::testing {
namespace {

constexpr std::size_t kGuard = 256;  // bytes on each side
constexpr std::size_t kAlignment = 64;
constexpr std::byte kSentinel{0xA5};

Shape widened(const Shape& shape, Gap gap) {
  if (shape.rank() < 2) return shape;
  Shape wide = {shape[0], gap.before + shape[1] + gap.behind};
  for (int axis = 2; axis < shape.rank(); ++axis) wide.append(shape[axis]);
  return wide;
}

std::size_t bytes_of(const TensorSpec& spec, const Layout& layout, Gap gap) {
  if (layout.kind() == LayoutKind::own) return layout.provider()->bytes();
  return static_cast<std::size_t>(widened(spec.shape, gap).elements()) * size_of(spec.dtype);
}

}  // namespace

GuardedBytes::GuardedBytes(std::size_t bytes, std::uint8_t poison)
    : storage_(bytes + 2 * kGuard + kAlignment, kSentinel), size_(bytes) {
  const auto start = reinterpret_cast<std::uintptr_t>(storage_.data()) + kGuard;
  const std::uintptr_t aligned = (start + kAlignment - 1) / kAlignment * kAlignment;
  data_ = storage_.data() + kGuard + (aligned - start);
  std::fill_n(data_, size_, std::byte{poison});
  forbid();
}

GuardedBytes::~GuardedBytes() { allow(); }

void GuardedBytes::forbid() {
#ifdef __SANITIZE_ADDRESS__
  __asan_poison_memory_region(storage_.data(), static_cast<std::size_t>(data_ - storage_.data()));
  __asan_poison_memory_region(
      data_ + size_, static_cast<std::size_t>(storage_.data() + storage_.size() - data_) - size_);
#endif
}

void GuardedBytes::allow() {
#ifdef __SANITIZE_ADDRESS__
  __asan_unpoison_memory_region(storage_.data(), storage_.size());
#endif
}

bool GuardedBytes::intact() {
  allow();
  const auto untouched = [](std::byte byte) { return byte == kSentinel; };
  const std::byte* end = storage_.data() + storage_.size();
  const bool intact = std::all_of(static_cast<const std::byte*>(storage_.data()),
                                  static_cast<const std::byte*>(data_), untouched) &&
                      std::all_of(static_cast<const std::byte*>(data_) + size_, end, untouched);
  forbid();
  return intact;
}

GuardedTensor::GuardedTensor(const TensorSpec& spec, const Layout& layout, Gap gap,
                             std::uint8_t poison)
    : poison_(poison), bytes_(bytes_of(spec, layout, gap), poison) {
  tensor_.spec = spec;
  tensor_.layout = layout;
  tensor_.data = bytes_.data();
  if (layout.kind() == LayoutKind::own) return;
  tensor_.strides = dense_strides(widened(spec.shape, gap), layout.kind());
  if (spec.shape.rank() >= 2) {
    tensor_.data += static_cast<std::size_t>(gap.before * tensor_.strides[1]) * size_of(spec.dtype);
  }
}

// Calls visit(row-major index, address) for every element.
template <typename Visit>
void GuardedTensor::for_each_element(Visit visit) const {
  const Shape& shape = tensor_.shape();
  const Strides& strides = tensor_.strides;
  const auto size = [&](int axis) { return axis < shape.rank() ? shape[axis] : 1; };
  const auto element_bytes = static_cast<std::int64_t>(size_of(tensor_.spec.dtype));
  std::size_t index = 0;
  for (std::int64_t a = 0; a < size(0); ++a) {
    for (std::int64_t b = 0; b < size(1); ++b) {
      for (std::int64_t c = 0; c < size(2); ++c) {
        for (std::int64_t d = 0; d < size(3); ++d) {
          const std::int64_t offset =
              a * strides[0] + b * strides[1] + c * strides[2] + d * strides[3];
          visit(index++, tensor_.data + offset * element_bytes);
        }
      }
    }
  }
}

void GuardedTensor::write(const HostValue& value) {
  const std::size_t size = size_of(tensor_.spec.dtype);
  for_each_element([&](std::size_t index, std::byte* element) {
    std::memcpy(element, value.bytes.data() + index * size, size);
  });
}

HostValue GuardedTensor::read() const {
  HostValue value(tensor_.spec);
  const std::size_t size = size_of(tensor_.spec.dtype);
  for_each_element([&](std::size_t index, const std::byte* element) {
    std::memcpy(value.bytes.data() + index * size, element, size);
  });
  return value;
}

void GuardedTensor::remember() { remembered_.assign(bytes_.data(), bytes_.data() + bytes_.size()); }

bool GuardedTensor::unchanged() {
  return std::equal(remembered_.begin(), remembered_.end(), bytes_.data());
}

std::string GuardedTensor::damage() {
  if (!bytes_.intact()) return "wrote before or behind the buffer";
  if (tensor_.layout.kind() == LayoutKind::own || tensor_.dense()) return {};
  std::vector<std::byte> gaps(bytes_.data(), bytes_.data() + bytes_.size());
  for_each_element([&](std::size_t, const std::byte* element) {
    std::fill_n(gaps.begin() + (element - bytes_.data()), size_of(tensor_.spec.dtype),
                std::byte{poison_});
  });
  const bool untouched = std::all_of(gaps.begin(), gaps.end(),
                                     [&](std::byte byte) { return byte == std::byte{poison_}; });
  return untouched ? "" : "wrote between the rows of the slice";
}

}  // namespace ridgeline::testing
