#pragma once

// A tensor in a buffer of its own with sentinels before, behind and, for a slice, between its
// elements: what a kernel must not write. Under AddressSanitizer the bytes before and behind may
// not even be read.

#include <span>
#include <string>
#include <vector>

#include "base/tensor.h"
#include "support/host_values.h"

namespace ridgeline::testing {

class GuardedBytes {
 public:
  GuardedBytes(std::size_t bytes, std::uint8_t poison);
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes();

  [[nodiscard]] std::byte* data() { return data_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  // False when a byte before or behind was written.
  [[nodiscard]] bool intact();

  // Everything, guards included, for copies to and from a device.
  [[nodiscard]] std::span<std::byte> storage() { return storage_; }
  [[nodiscard]] std::size_t data_offset() const {
    return static_cast<std::size_t>(data_ - storage_.data());
  }

 private:
  void forbid();
  void allow();

  std::vector<std::byte> storage_;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

// Channels before and behind the slice in the wider value it is cut from.
struct Gap {
  std::int64_t before = 0, behind = 0;
};

class GuardedTensor {
 public:
  // Poisoned throughout.
  GuardedTensor(const TensorSpec& spec, const Layout& layout, Gap gap, std::uint8_t poison);

  [[nodiscard]] const Tensor& tensor() const { return tensor_; }
  [[nodiscard]] GuardedBytes& bytes() { return bytes_; }
  void write(const HostValue& value);  // not for a provider's own layout
  [[nodiscard]] HostValue read() const;
  // Remembers the contents, to see later whether they changed.
  void remember();
  [[nodiscard]] bool unchanged();
  // What was written that must not be; empty when nothing was.
  [[nodiscard]] std::string damage();

 private:
  template <typename Visit>
  void for_each_element(Visit visit) const;

  std::uint8_t poison_;
  GuardedBytes bytes_;
  Tensor tensor_;
  std::vector<std::byte> remembered_;
};

}  // namespace ridgeline::testing
