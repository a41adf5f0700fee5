#pragma once

#include <memory>

#include "devices/device.h"

namespace ridgeline {

// A device as unlike the host as a test can make it: work is only queued, and done by another
// thread at synchronize(); its memory faults when the host touches it. Code that runs here will not
// be surprised by a GPU. It computes with the backends of the cpu.
[[nodiscard]] std::unique_ptr<Device> make_queued_device();

}  // namespace ridgeline
