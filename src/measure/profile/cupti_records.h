#pragma once

// CUPTI's activity records, from the moment they are asked for to plain records of our own.

#include "measure/profile/device_clock.h"
#include "measure/profile/device_records.h"

namespace ridgeline::cupti {

// Begins to collect. Throws a failure with the reason when CUPTI refuses; nothing is left behind.
void begin_records();
// Ends it and returns what was collected. REQUIRES: the device is idle.
[[nodiscard]] DeviceRecords end_records();

// Calls of this thread come from here until leave_origin(), one within the other.
void enter_origin(const CallOrigin& origin);
void leave_origin();

// CUPTI's clock beside our own: the best of several readings.
[[nodiscard]] ClockReading read_clock();

}  // namespace ridgeline::cupti
