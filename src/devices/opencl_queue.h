#pragma once

// Where an OpenCL device queues its work, and what lies behind the addresses of its memory.
// KernelArgs::queue points to a Queue. OpenCL 1.2 has no addresses in device memory: an allocation
// is a buffer object, and the address that the rest of the program computes with is a stretch of
// the host's address space that faults when it is touched.

#include <cstddef>
#include <map>
#include <memory>

#include "devices/opencl_recording.h"

namespace ridgeline::opencl {

// A place in device memory: what kernels are given for an address.
struct Place {
  cl_mem buffer = nullptr;
  std::size_t offset = 0;  // in bytes
};

class Queue {
 public:
  explicit Queue(Context& context);
  ~Queue();
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  [[nodiscard]] Context& context() const { return context_; }
  [[nodiscard]] cl_command_queue handle() const { return queue_; }
  void finish() const;

  // The kernel that the next launch sets arguments of: an object of its own while launches are
  // recorded.
  [[nodiscard]] cl_kernel kernel(const Code& code);
  // Queues the kernel with the arguments that it has now, or writes it down.
  void launch(cl_kernel kernel, const char* name, const Range& range);
  // Writes down what `launches` launches. Null where the platform refuses it.
  [[nodiscard]] std::unique_ptr<CommandBuffer> record(const std::function<void()>& launches);

  // Throws a failure with the reason where there is too little memory.
  [[nodiscard]] std::byte* allocate(std::size_t bytes);
  void release(std::byte* memory) noexcept;
  // REQUIRES: an address inside an allocation, or null.
  [[nodiscard]] Place place(const void* address) const;

 private:
  struct Block {
    cl_mem buffer = nullptr;
    std::size_t reserved = 0;  // addresses
  };
  Context& context_;
  cl_command_queue queue_ = nullptr;
  CommandBuffer* recording_ = nullptr;
  std::map<const std::byte*, Block> blocks_;  // by their first address
};

// An event with an owner.
class Event {
 public:
  Event() = default;
  ~Event() { reset(); }
  Event(Event&& other) noexcept : event_(other.event_) { other.event_ = nullptr; }
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  [[nodiscard]] cl_event* slot() {
    reset();
    return &event_;
  }
  // The end of everything queued so far.
  void mark(const Queue& queue);
  void wait();                           // returns at once where nothing was queued
  [[nodiscard]] double seconds() const;  // when it ended, by the device's clock

 private:
  void reset();
  cl_event event_ = nullptr;
};

}  // namespace ridgeline::opencl
