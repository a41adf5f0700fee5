#include "devices/opencl_step_clock.h"

#include "devices/opencl_queue.h"

namespace ridgeline {

std::vector<double> opencl_step_times(Device& device, std::size_t count,
                                      const std::function<void(std::size_t)>& launch) {
  const auto& queue = *static_cast<opencl::Queue*>(device.queue());
  device.synchronize();
  std::vector<opencl::Event> marks(count + 1);
  marks[0].mark(queue);
  for (std::size_t i = 0; i < count; ++i) {
    launch(i);
    marks[i + 1].mark(queue);
  }
  device.synchronize();
  std::vector<double> seconds;
  for (std::size_t i = 0; i < count; ++i) {
    seconds.push_back(marks[i + 1].seconds() - marks[i].seconds());
  }
  return seconds;
}

}  // namespace ridgeline
