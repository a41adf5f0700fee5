#include "devices/opencl_library.h"

#include <dlfcn.h>

#include "base/error.h"

namespace ridgeline::opencl {
namespace {

Library open_library() {
  Library opened;
  void* handle = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    opened.reason =
        "OpenCL's loader, libOpenCL.so.1, was not found (Debian: ocl-icd-libopencl1, and the "
        "driver of the device)";
    return opened;
  }
#define X(call)                                                                \
  opened.call = reinterpret_cast<decltype(opened.call)>(dlsym(handle, #call)); \
  if (opened.call == nullptr)                                                  \
    opened.reason =                                                            \
        "libOpenCL.so.1 is older than OpenCL 1.2: "                            \
        "no " #call;
  RIDGELINE_OPENCL_CALLS(X)
#undef X
  return opened;
}

const char* words_for(cl_int error) {
  switch (error) {
    case CL_DEVICE_NOT_AVAILABLE:
      return "the device is not available";
    case CL_MEM_OBJECT_ALLOCATION_FAILURE:
      return "the device's memory is used up";
    case CL_OUT_OF_RESOURCES:
      return "out of resources";
    case CL_OUT_OF_HOST_MEMORY:
      return "the host's memory is used up";
    case CL_BUILD_PROGRAM_FAILURE:
      return "the program does not compile";
    case CL_INVALID_BUFFER_SIZE:
      return "the buffer is too large";
    case CL_INVALID_KERNEL_NAME:
      return "no such kernel";
    case CL_INVALID_ARG_INDEX:
    case CL_INVALID_ARG_VALUE:
    case CL_INVALID_ARG_SIZE:
    case CL_INVALID_KERNEL_ARGS:
      return "wrong kernel arguments";
    case CL_INVALID_WORK_GROUP_SIZE:
      return "the work-group is too large";
    case CL_INVALID_VALUE:
      return "an invalid value";
    default:
      return "error";
  }
}

}  // namespace

// Never closed: drivers run threads of their own until the program ends.
const Library& library() {
  static const Library opened = open_library();
  return opened;
}

std::string text_of(cl_int error) { return fmt::format("{} ({})", words_for(error), error); }

void check(cl_int error, const char* what) {
  if (error != CL_SUCCESS) fail("OpenCL: {}: {}", what, text_of(error));
}

}  // namespace ridgeline::opencl
