#include "devices/opencl_queue.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "base/error.h"

namespace ridgeline::opencl {

Queue::Queue(Context& context) : context_(context) {
  cl_int error = CL_SUCCESS;
  queue_ = library().clCreateCommandQueue(context.handle(), context.device(),
                                          CL_QUEUE_PROFILING_ENABLE, &error);
  check(error, "a command queue");
}

Queue::~Queue() {
  (void)library().clFinish(queue_);
  while (!blocks_.empty()) release(const_cast<std::byte*>(blocks_.begin()->first));
  (void)library().clReleaseCommandQueue(queue_);
}

void Queue::finish() const { check(library().clFinish(queue_), "the device's work"); }

cl_kernel Queue::kernel(const Code& code) {
  return recording_ != nullptr ? recording_->new_kernel(code) : context_.kernel(code);
}

void Queue::launch(cl_kernel kernel, const char* name, const Range& range) {
  if (recording_ != nullptr) {
    recording_->add(kernel, range);
  } else {
    check(library().clEnqueueNDRangeKernel(queue_, kernel, range.dimensions, nullptr,
                                           range.global.data(), range.local.data(), 0, nullptr,
                                           nullptr),
          name);
  }
}

std::unique_ptr<CommandBuffer> Queue::record(const std::function<void()>& launches) {
  auto buffer = std::make_unique<CommandBuffer>(context_, queue_);
  recording_ = buffer.get();
  try {
    launches();
  } catch (...) {
    recording_ = nullptr;
    throw;
  }
  recording_ = nullptr;
  if (!buffer->finish()) buffer.reset();
  return buffer;
}

std::byte* Queue::allocate(std::size_t bytes) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t reserved = std::max<std::size_t>((bytes + page - 1) / page, 1) * page;
  void* address =
      mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (address == MAP_FAILED) fail("OpenCL: no addresses are left for {} bytes", bytes);
  cl_int error = CL_SUCCESS;
  cl_mem buffer = library().clCreateBuffer(context_.handle(), CL_MEM_READ_WRITE,
                                           std::max<std::size_t>(bytes, 1), nullptr, &error);
  if (error != CL_SUCCESS) {
    munmap(address, reserved);
    fail("{}", text_of(error));
  }
  // Drivers may wait with the memory until somebody wants it: here the caller can still be told.
  error = library().clEnqueueMigrateMemObjects(
      queue_, 1, &buffer, CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED, 0, nullptr, nullptr);
  if (error == CL_SUCCESS) error = library().clFinish(queue_);
  if (error != CL_SUCCESS) {
    (void)library().clReleaseMemObject(buffer);
    munmap(address, reserved);
    fail("{}", text_of(error));
  }
  auto* first = static_cast<std::byte*>(address);
  blocks_[first] = {buffer, reserved};
  return first;
}

void Queue::release(std::byte* memory) noexcept {
  const auto block = blocks_.find(memory);
  if (block == blocks_.end()) return;
  (void)library().clReleaseMemObject(block->second.buffer);
  munmap(memory, block->second.reserved);
  blocks_.erase(block);
}

Place Queue::place(const void* address) const {
  if (address == nullptr) return {};
  const auto* byte = static_cast<const std::byte*>(address);
  auto block = blocks_.upper_bound(byte);
  ensure(block != blocks_.begin(), "an address outside the OpenCL device's memory");
  --block;
  const auto offset = static_cast<std::size_t>(byte - block->first);
  ensure(offset < block->second.reserved, "an address behind the OpenCL device's memory");
  return {block->second.buffer, offset};
}

void Event::mark(const Queue& queue) {
  check(library().clEnqueueMarkerWithWaitList(queue.handle(), 0, nullptr, slot()), "an event");
}

void Event::wait() {
  if (event_ != nullptr) check(library().clWaitForEvents(1, &event_), "waiting for an event");
}

double Event::seconds() const {
  cl_ulong nanoseconds = 0;
  check(library().clGetEventProfilingInfo(event_, CL_PROFILING_COMMAND_END, sizeof(nanoseconds),
                                          &nanoseconds, nullptr),
        "reading a time");
  return static_cast<double>(nanoseconds) * 1e-9;
}

void Event::reset() {
  if (event_ != nullptr) (void)library().clReleaseEvent(event_);
  event_ = nullptr;
}

}  // namespace ridgeline::opencl
