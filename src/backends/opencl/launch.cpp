#include "backends/opencl/launch.h"

#include "base/error.h"

namespace ridgeline::opencl {

Launch::Launch(Queue& queue, const Code& code)
    : queue_(queue), name_(code.kernel), kernel_(queue.kernel(code)) {}

void Launch::set(std::size_t bytes, const void* value) {
  const cl_int error = library().clSetKernelArg(kernel_, next_, bytes, value);
  if (error != CL_SUCCESS) fail("OpenCL: {}: argument {}: {}", name_, next_, text_of(error));
  ++next_;
}

Launch& Launch::buffer(const void* address) {
  const Place place = queue_.place(address);
  const cl_ulong offset = place.offset;
  set(sizeof(cl_mem), place.buffer == nullptr ? nullptr : &place.buffer);
  set(sizeof(offset), &offset);
  return *this;
}

Launch& Launch::rows(const Rows& rows) {
  buffer(rows.data);
  return value<cl_long>(rows.stride);
}

Launch& Launch::local(std::size_t bytes) {
  set(bytes, nullptr);
  return *this;
}

void Launch::run(const Size& items, const Size& group) const {
  if (items.x == 0 || items.y == 0 || items.z == 0) return;
  const auto whole = [](std::int64_t count, std::int64_t size) {
    return static_cast<std::size_t>((count + size - 1) / size * size);
  };
  Range range;
  range.global = {whole(items.x, group.x), whole(items.y, group.y), whole(items.z, group.z)};
  range.local = {static_cast<std::size_t>(group.x), static_cast<std::size_t>(group.y),
                 static_cast<std::size_t>(group.z)};
  range.dimensions = range.global[2] > 1 || range.local[2] > 1 ? 3 : 2;
  queue_.launch(kernel_, name_, range);
}

}  // namespace ridgeline::opencl
