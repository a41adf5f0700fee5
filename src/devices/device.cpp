#include "devices/device.h"

#include "base/error.h"
#include "base/parse.h"

namespace ridgeline {

std::string device_kind(std::string_view name) {
  return std::string(name.substr(0, name.find(':')));
}

std::string device_name(std::string_view name) {
  return name == "cuda" ? "cuda:0" : std::string(name);
}

std::unique_ptr<Device> make_device(const std::string& given) {
  const std::string name = device_name(given);
  if (name == "cpu") return make_cpu_device();
  if (name.starts_with("cuda:")) {
    const int index = number_in<int>(std::string_view(name).substr(5)).value_or(-1);
    if (index >= 0) return make_cuda_device(index);
  }
  bad_input("unknown device '{}'; known: cpu, and cuda:0, cuda:1 and so on for graphics processors",
            given);
}

}  // namespace ridgeline
