#include "measure/profile/device_clock.h"

#include <algorithm>
#include <cmath>

namespace ridgeline {
namespace {

// Clocks that are set right over the network are not moved faster than this; what differs more is
// an error of reading.
constexpr double kLargestDrift = 1e-3;

double middle(const ClockReading& reading, std::int64_t zero) {
  return (static_cast<double>(reading.before - zero) + static_cast<double>(reading.after - zero)) *
         0.5e-9;
}

// Unsigned differences would wrap around.
double difference(std::uint64_t a, std::uint64_t b) {
  return a >= b ? static_cast<double>(a - b) : -static_cast<double>(b - a);
}

}  // namespace

ClockReading tightest(std::span<const ClockReading> readings) {
  return *std::min_element(readings.begin(), readings.end(),
                           [](const ClockReading& a, const ClockReading& b) {
                             return a.after - a.before < b.after - b.before;
                           });
}

DeviceClock::DeviceClock(const ClockReading& first, const ClockReading& last, std::int64_t zero)
    : other_(first.other), at_(middle(first, zero)) {
  if (last.other <= first.other) return;
  const double rate = (middle(last, zero) - at_) / difference(last.other, first.other);
  if (std::abs(rate * 1e9 - 1.0) <= kLargestDrift) seconds_per_ = rate;
}

double DeviceClock::seconds(std::uint64_t other) const {
  return at_ + difference(other, other_) * seconds_per_;
}

}  // namespace ridgeline
