#pragma once

// How a row starts a kernel of a .cl file:
//
//   Launch(args, {"kernels/elementwise.cl", "add_act"})
//       .rows(src).rows(other).rows(dst).value(count)   // in the kernel's order
//       .run({width, rows}, {64, 1});
//
// The file is compiled at its first use on a device and kept (devices/opencl_context.h). Nothing is
// allocated, nothing waits.

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "devices/kernel.h"
#include "devices/opencl_queue.h"

namespace ridgeline::opencl {

// A tensor's elements as rows of contiguous channels: pixels by channels for an nhwc image, samples
// by features for rank 2. `stride` is the distance of two rows in elements: more than `width` for a
// slice.
struct Rows {
  const void* data = nullptr;
  std::int64_t rows = 0, width = 0, stride = 0;
  bool half = false;  // of 16 bits, else of 32
};
// For the build of a kernel whose NUMBERs (prelude.cl) are these, or are of 16 bits.
[[nodiscard]] inline std::string number_option(bool half) { return half ? "-DHALF" : ""; }
[[nodiscard]] inline std::string number_option(const Rows& rows) {
  return number_option(rows.half);
}

struct Size {
  std::int64_t x = 1, y = 1, z = 1;
};

[[nodiscard]] inline Queue& queue_of(const KernelArgs& args) {
  return *static_cast<Queue*>(args.queue);
}

class Launch {
 public:
  Launch(const KernelArgs& args, const Code& code) : Launch(queue_of(args), code) {}
  Launch(Queue& queue, const Code& code);

  // BUFFER(name) of prelude.cl: the buffer object and the offset in bytes. Null is null there.
  Launch& buffer(const void* address);
  // ROWS(name): the buffer, and the stride as a long.
  Launch& rows(const Rows& rows);
  // A number or a struct by value; 64-bit integers are long.
  template <typename T>
  Launch& value(const T& value) {
    static_assert(std::is_trivially_copyable_v<T> &&
                  (!std::is_pointer_v<T> || std::is_same_v<T, cl_mem>)&&!std::is_same_v<T, bool>);
    set(sizeof(T), &value);
    return *this;
  }
  // So many bytes of local memory: a __local pointer.
  Launch& local(std::size_t bytes);

  // Queues the kernel over at least `items` work-items in groups of `group`: whole groups run, and
  // kernels leave out what is too much.
  void run(const Size& items, const Size& group) const;

 private:
  void set(std::size_t bytes, const void* value);

  Queue& queue_;
  const char* name_;
  cl_kernel kernel_;
  cl_uint next_ = 0;
};

}  // namespace ridgeline::opencl
