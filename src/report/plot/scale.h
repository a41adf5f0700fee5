#pragma once

// From values to pixels, and the marks along an axis.

#include <set>
#include <string>
#include <vector>

#include "report/figure.h"

namespace ridgeline::report::plot {

struct Scale {
  double low = 0.0, high = 1.0;  // values
  bool logarithmic = false;
  double from = 0.0, to = 1.0;  // pixels that they stand at

  [[nodiscard]] double pixel(double value) const;
  // Whether a value can stand on it at all.
  [[nodiscard]] bool takes(double value) const;
};

// What the values of an axis span, with what else must be in view.
class Range {
 public:
  void add(double value);
  [[nodiscard]] bool empty() const { return low_ > high_; }
  [[nodiscard]] double low() const { return low_; }
  [[nodiscard]] double high() const { return high_; }

 private:
  double low_ = 1e300, high_ = -1e300;
};

// A scale on which the range has some air around it. `from_zero`: bars and areas begin there.
[[nodiscard]] Scale scale_of(const Axis& axis, const Range& range, bool from_zero);

struct Tick {
  double value = 0.0;
  std::string label;  // empty: a small mark without
};
// About `wanted` labels at round numbers.
[[nodiscard]] std::vector<Tick> ticks_of(const Scale& scale, int wanted);

// The same at the values themselves, where they are some powers of two on a logarithmic axis, as
// batches are.
[[nodiscard]] std::vector<Tick> ticks_of(const Scale& scale, int wanted,
                                         const std::set<double>& values);

// "throughput (img/s)"
[[nodiscard]] std::string title_of(const Axis& axis);

}  // namespace ridgeline::report::plot
