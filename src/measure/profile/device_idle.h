#pragma once

// Why a device did nothing: the host came late, or work was queued and could not begin.

#include <span>

#include "measure/profile/profile.h"

namespace ridgeline {

// Seconds in all iterations together in which nothing ran on the device, by cause.
struct DeviceIdle {
  double host_late = 0.0;   // nothing more was launched when the device fell idle
  double data = 0.0;        // the same, while the host waited for a batch
  double dependency = 0.0;  // what came next was queued, and waited for what came before
  double unknown = 0.0;     // the launch of the next kernel is not known
  [[nodiscard]] double total() const { return host_late + data + dependency + unknown; }
};

// Looks within iterations alone where the events have them, else from the first activity of the
// device to the last.
[[nodiscard]] DeviceIdle attribute_idle(std::span<const ProfileEvent> events);

}  // namespace ridgeline
