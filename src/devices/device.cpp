#include "devices/device.h"

#include <charconv>

#include "base/error.h"

namespace ridgeline {

std::unique_ptr<Device> make_device(const std::string& name) {
  if (name == "cpu") return make_cpu_device();
  if (name == "cuda") return make_cuda_device(0);
  if (name.starts_with("cuda:")) {
    int index = 0;
    const char* end = name.data() + name.size();
    const auto [stop, error] = std::from_chars(name.data() + 5, end, index);
    if (error == std::errc() && stop == end && index >= 0) return make_cuda_device(index);
  }
  bad_input("unknown device '{}'; known: cpu, and cuda:0, cuda:1 and so on for graphics processors",
            name);
}

}  // namespace ridgeline
