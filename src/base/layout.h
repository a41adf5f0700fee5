#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace ridgeline {

enum class LayoutKind : std::uint8_t {
  plain,  // row-major in the logical order of the axes: nchw for images
  nhwc,   // channels innermost
  own,    // a provider's own; only that provider reads, writes and reorders it
};

// What a provider tells of a layout of its own.
class OwnLayout {
 public:
  virtual ~OwnLayout() = default;
  [[nodiscard]] virtual std::string name() const = 0;   // "onednn:aBcd16b"
  [[nodiscard]] virtual std::size_t bytes() const = 0;  // padding lanes included
  [[nodiscard]] virtual bool equals(const OwnLayout& other) const = 0;
};

// How the elements of a value lie in memory.
class Layout {
 public:
  Layout() = default;
  [[nodiscard]] static Layout plain() { return {}; }
  [[nodiscard]] static Layout nhwc() { return Layout(LayoutKind::nhwc, nullptr); }
  [[nodiscard]] static Layout own(std::shared_ptr<const OwnLayout> layout) {
    return Layout(LayoutKind::own, std::move(layout));
  }

  [[nodiscard]] LayoutKind kind() const { return kind_; }
  [[nodiscard]] const OwnLayout* provider() const { return own_.get(); }
  [[nodiscard]] std::string text() const {
    switch (kind_) {
      case LayoutKind::plain:
        return "plain";
      case LayoutKind::nhwc:
        return "nhwc";
      case LayoutKind::own:
        return own_->name();
    }
    return "?";
  }
  friend bool operator==(const Layout& a, const Layout& b) {
    if (a.kind_ != b.kind_) return false;
    return a.kind_ != LayoutKind::own || a.own_ == b.own_ || a.own_->equals(*b.own_);
  }

 private:
  Layout(LayoutKind kind, std::shared_ptr<const OwnLayout> layout)
      : kind_(kind), own_(std::move(layout)) {}

  LayoutKind kind_ = LayoutKind::plain;
  std::shared_ptr<const OwnLayout> own_;
};

}  // namespace ridgeline
