#include "report/plot/scale.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "report/table.h"

namespace ridgeline::report::plot {
namespace {

// "10⁻³"
std::string power_text(int exponent) {
  static const char* const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string text = "10";
  if (exponent < 0) text += "⁻";
  for (const char digit : std::to_string(std::abs(exponent))) text += digits[digit - '0'];
  return text;
}

std::string label_of(double value) {
  const double size = std::abs(value);
  if (size == 0.0) return "0";
  if (size < 1e7 && size >= 9.99e-5) {
    // Round numbers have few digits; the others of a tick are errors of adding up.
    std::string text = number_text(value, 6);
    if (text.find('.') != std::string::npos) {
      while (text.ends_with('0')) text.pop_back();
      if (text.ends_with('.')) text.pop_back();
    }
    return text;
  }
  const int exponent = static_cast<int>(std::floor(std::log10(size) + 1e-9));
  const double mantissa = value / std::pow(10.0, exponent);
  if (std::abs(mantissa - 1.0) < 1e-6) return power_text(exponent);
  return fmt::format("{:.3g}×{}", mantissa, power_text(exponent));
}

std::vector<Tick> linear_ticks(const Scale& scale, int wanted) {
  const double rough = (scale.high - scale.low) / wanted;
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  double step = 10.0 * power;
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough * 0.999) {
      step = factor * power;
      break;
    }
  }
  std::vector<Tick> ticks;
  const double slack = 1e-6 * step;
  for (double i = std::ceil((scale.low - slack) / step); i * step <= scale.high + slack; ++i) {
    ticks.push_back({i * step, label_of(i * step)});
  }
  return ticks;
}

std::vector<Tick> logarithmic_ticks(const Scale& scale, int wanted) {
  const int first = static_cast<int>(std::floor(std::log10(scale.low) + 1e-9));
  const int last = static_cast<int>(std::ceil(std::log10(scale.high) - 1e-9));
  const int every = std::max(1, (last - first + wanted - 1) / wanted);
  // Few decades have room for numbers between.
  const bool between = std::log10(scale.high / scale.low) < 2.2;
  // One way of writing numbers for one axis.
  const bool powers = !between && (scale.high >= 1e7 || scale.low < 9.99e-5);
  std::vector<Tick> ticks;
  for (int exponent = first; exponent <= last; ++exponent) {
    for (int digit = 1; digit <= 9; ++digit) {
      const double value = digit * std::pow(10.0, exponent);
      if (value < scale.low * 0.9999 || value > scale.high * 1.0001) continue;
      const bool named =
          digit == 1 ? (exponent - first) % every == 0 : between && (digit == 2 || digit == 5);
      if (!named && every > 1 && digit > 1) continue;
      const std::string label = powers && digit == 1 ? power_text(exponent) : label_of(value);
      ticks.push_back({value, named ? label : std::string()});
    }
  }
  return ticks;
}

}  // namespace

double Scale::pixel(double value) const {
  const double share =
      logarithmic ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
  return from + share * (to - from);
}

bool Scale::takes(double value) const {
  return std::isfinite(value) && (!logarithmic || value > 0.0);
}

void Range::add(double value) {
  if (!std::isfinite(value)) return;
  low_ = std::min(low_, value);
  high_ = std::max(high_, value);
}

Scale scale_of(const Axis& axis, const Range& range, bool from_zero) {
  Scale scale;
  scale.logarithmic = axis.logarithmic;
  double low = range.empty() ? (axis.logarithmic ? 1.0 : 0.0) : range.low();
  double high = range.empty() ? (axis.logarithmic ? 10.0 : 1.0) : range.high();
  if (axis.logarithmic) {
    // Bars need a foot: below the least of them.
    const double air = std::max(std::pow(high / low, 0.06), 1.15);
    low = from_zero ? low / std::max(air, 2.0) : low / air;
    high *= air;
  } else {
    if (from_zero || (low > 0.0 && low < 0.3 * high)) low = std::min(low, 0.0);
    if (from_zero) high = std::max(high, 0.0);
    if (high - low < 1e-9 * std::max(std::abs(high), std::abs(low)) || high == low) {
      const double half = high == 0.0 ? 0.5 : 0.1 * std::abs(high);
      high += half;
      if (low != 0.0) low -= half;
    }
    const double air = 0.06 * (high - low);
    const bool shares = axis.unit == "%" && high <= 100.0;
    if (low != 0.0) low -= air;
    if (high != 0.0) high = shares ? std::min(high + air, 100.0) : high + air;
  }
  scale.low = axis.low.value_or(low);
  scale.high = axis.high.value_or(high);
  if (axis.logarithmic && scale.low <= 0.0) scale.low = std::min(low, scale.high / 10.0);
  if (!(scale.high > scale.low)) {
    scale.high = axis.logarithmic ? scale.low * 10.0 : scale.low + 1.0;
  }
  return scale;
}

std::vector<Tick> ticks_of(const Scale& scale, int wanted) {
  return scale.logarithmic ? logarithmic_ticks(scale, wanted) : linear_ticks(scale, wanted);
}

std::vector<Tick> ticks_of(const Scale& scale, int wanted, const std::set<double>& values) {
  const bool powers = scale.logarithmic && values.size() > 1 && values.size() <= 12 &&
                      std::ranges::all_of(values, [](double value) {
                        return value >= 1.0 && std::log2(value) == std::floor(std::log2(value));
                      });
  if (!powers) return ticks_of(scale, wanted);
  std::vector<Tick> ticks;
  for (const double value : values) ticks.push_back({value, label_of(value)});
  return ticks;
}

std::string title_of(const Axis& axis) {
  if (axis.unit.empty()) return axis.title;
  return axis.title.empty() ? axis.unit : fmt::format("{} ({})", axis.title, axis.unit);
}

}  // namespace ridgeline::report::plot
