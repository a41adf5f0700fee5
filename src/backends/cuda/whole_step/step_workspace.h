#pragma once

#include <cstddef>
#include <cstdint>

namespace ridgeline::cuda {

// Cuts a kernel's workspace into pieces; with null it only counts the bytes.
class StepWorkspace {
 public:
  explicit StepWorkspace(std::byte* workspace) : base_(workspace) {}
  template <typename T>
  T* take(std::int64_t count) {
    std::byte* const piece = base_ == nullptr ? nullptr : base_ + used_;
    used_ += (static_cast<std::size_t>(count) * sizeof(T) + 63) / 64 * 64;
    return reinterpret_cast<T*>(piece);
  }
  [[nodiscard]] std::size_t bytes() const { return used_; }

 private:
  std::byte* base_;
  std::size_t used_ = 0;
};

}  // namespace ridgeline::cuda
