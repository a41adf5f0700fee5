#pragma once

// From a tool's records to events of a profile: each activity of the device with the step of the
// plan that launched it.

#include "measure/profile/device_clock.h"
#include "measure/profile/device_profiler.h"
#include "measure/profile/device_records.h"

namespace ridgeline {

// Steps that were launched one by one are known from their calls. Activities of a replay all come
// from one call: they run in the order in which they were recorded, so that the first belong to the
// first step that recorded something, and so on. A replay with other activities than were recorded
// says so and is joined by the nodes of a replay that agreed; where there is none its activities
// have no step. What has no record, or a record without times, is told as missing.
[[nodiscard]] DeviceActivity join_records(DeviceRecords records, const RecordedSteps& recorded,
                                          const DeviceClock& clock);

}  // namespace ridgeline
