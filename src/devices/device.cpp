#include "devices/device.h"

#include "base/error.h"
#include "base/parse.h"
#include "devices/opencl.h"

namespace ridgeline {

std::string device_kind(std::string_view name) {
  return std::string(name.substr(0, name.find(':')));
}

std::string device_name(std::string_view name) {
  return name == "cuda" || name == "opencl" ? std::string(name) + ":0" : std::string(name);
}

std::unique_ptr<Device> make_device(const std::string& given) {
  const std::string name = device_name(given);
  if (name == "cpu") return make_cpu_device();
  const std::string kind = device_kind(name);
  if ((kind == "cuda" || kind == "opencl") && name.size() > kind.size()) {
    const auto digits = std::string_view(name).substr(kind.size() + 1);
    const int index = number_in<int>(digits).value_or(-1);
    if (index >= 0) return kind == "cuda" ? make_cuda_device(index) : make_opencl_device(index);
  }
  bad_input(
      "unknown device '{}'; known: cpu, and cuda:0, cuda:1 and so on for NVIDIA's graphics "
      "processors, opencl:0, opencl:1 and so on for devices of OpenCL",
      given);
}

}  // namespace ridgeline
