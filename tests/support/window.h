#pragma once

// Writes the attributes of a convolution or a pool in one line: kernel(3, 3).stride(2, 1).pad(1).

#include <cstdint>

#include "ops/conv2d.h"
#include "ops/pool.h"

namespace ridgeline::testing {

template <typename Attributes>
class Window {
 public:
  explicit Window(Attributes attributes) : attributes_(attributes) {}

  Window stride(std::int64_t h, std::int64_t w) const {
    return with([&](Attributes& a) { a.stride_h = h, a.stride_w = w; });
  }
  Window stride(std::int64_t both) const { return stride(both, both); }
  Window pad(std::int64_t top, std::int64_t left, std::int64_t bottom, std::int64_t right) const {
    return with([&](Attributes& a) {
      a.pad_top = top, a.pad_left = left, a.pad_bottom = bottom, a.pad_right = right;
    });
  }
  Window pad(std::int64_t all) const { return pad(all, all, all, all); }
  Window dilation(std::int64_t h, std::int64_t w) const {
    return with([&](Attributes& a) { a.dilation_h = h, a.dilation_w = w; });
  }
  Window groups(std::int64_t groups) const {
    return with([&](Attributes& a) { a.groups = groups; });
  }
  Window ceil() const {
    return with([](Attributes& a) { a.ceil_mode = true; });
  }
  Window exclude_pad() const {
    return with([](Attributes& a) { a.count_include_pad = false; });
  }
  // The image of src, which the data gradients need.
  Window src(std::int64_t h, std::int64_t w) const {
    return with([&](Attributes& a) { a.src_h = h, a.src_w = w; });
  }
  operator Attributes() const { return attributes_; }  // NOLINT: meant to read as attributes

 private:
  template <typename Change>
  Window with(Change change) const {
    Window changed = *this;
    change(changed.attributes_);
    return changed;
  }

  Attributes attributes_;
};

[[nodiscard]] inline Window<Conv2dAttributes> kernel(std::int64_t h, std::int64_t w) {
  Conv2dAttributes attributes;
  attributes.kernel_h = h;
  attributes.kernel_w = w;
  return Window(attributes);
}

[[nodiscard]] inline Window<PoolAttributes> pool_window(PoolKind kind, std::int64_t h,
                                                        std::int64_t w) {
  PoolAttributes attributes;
  attributes.kind = kind;
  attributes.kernel_h = h;
  attributes.kernel_w = w;
  return Window(attributes);
}

[[nodiscard]] inline Window<PoolAttributes> max_window(std::int64_t h, std::int64_t w) {
  return pool_window(PoolKind::max, h, w);
}

[[nodiscard]] inline Window<PoolAttributes> average_window(std::int64_t h, std::int64_t w) {
  return pool_window(PoolKind::average, h, w);
}

}  // namespace ridgeline::testing
