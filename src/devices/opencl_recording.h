#pragma once

// Launches written down once and started as a whole, in a command buffer (cl_khr_command_buffer).

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "devices/opencl_context.h"

namespace ridgeline::opencl {

// How many work-items a launch has, in groups of `local`.
struct Range {
  std::array<std::size_t, 3> global{}, local{};
  cl_uint dimensions = 2;
};

// Every launch has a kernel object of its own: PoCL 3.1 replays a kernel with the arguments that
// its object was given last, not with those of the launch.
class CommandBuffer {
 public:
  CommandBuffer(Context& context, cl_command_queue queue);
  ~CommandBuffer();
  CommandBuffer(const CommandBuffer&) = delete;
  CommandBuffer& operator=(const CommandBuffer&) = delete;

  [[nodiscard]] cl_kernel new_kernel(const Code& code);
  void add(cl_kernel kernel, const Range& range);
  // False where the platform refused a part: it cannot be replayed then.
  [[nodiscard]] bool finish();
  void replay();  // queued, like a launch

 private:
  Context& context_;
  cl_command_queue queue_;
  cl_command_buffer_khr buffer_ = nullptr;
  std::vector<cl_kernel> kernels_;
  cl_event ended_ = nullptr;
  bool refused_ = false;
};

// Why launches are not recorded on a device; empty where they are. A device without the extension
// is refused, and so is one that replays two launches of a kernel with wrong values: that is tried
// once.
[[nodiscard]] const std::string& recording_refusal(Context& context);

}  // namespace ridgeline::opencl
