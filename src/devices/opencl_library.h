#pragma once

// OpenCL 1.2 as the installable client driver loader gives it, opened when it is first asked for:
// the program starts without any OpenCL.

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <CL/cl_ext.h>

#include <string>

namespace ridgeline::opencl {

#define RIDGELINE_OPENCL_CALLS(X)             \
  X(clGetPlatformIDs)                         \
  X(clGetPlatformInfo)                        \
  X(clGetDeviceIDs)                           \
  X(clGetDeviceInfo)                          \
  X(clGetExtensionFunctionAddressForPlatform) \
  X(clCreateContext)                          \
  X(clCreateCommandQueue)                     \
  X(clReleaseCommandQueue)                    \
  X(clFlush)                                  \
  X(clFinish)                                 \
  X(clCreateBuffer)                           \
  X(clReleaseMemObject)                       \
  X(clEnqueueReadBuffer)                      \
  X(clEnqueueWriteBuffer)                     \
  X(clEnqueueMigrateMemObjects)               \
  X(clEnqueueFillBuffer)                      \
  X(clEnqueueMapBuffer)                       \
  X(clEnqueueUnmapMemObject)                  \
  X(clEnqueueNDRangeKernel)                   \
  X(clEnqueueMarkerWithWaitList)              \
  X(clWaitForEvents)                          \
  X(clReleaseEvent)                           \
  X(clGetEventProfilingInfo)                  \
  X(clCreateProgramWithSource)                \
  X(clCreateProgramWithBinary)                \
  X(clBuildProgram)                           \
  X(clGetProgramInfo)                         \
  X(clGetProgramBuildInfo)                    \
  X(clReleaseProgram)                         \
  X(clCreateKernel)                           \
  X(clReleaseKernel)                          \
  X(clGetKernelWorkGroupInfo)                 \
  X(clSetKernelArg)

struct Library {
#define X(name) decltype(&::name) name = nullptr;
  RIDGELINE_OPENCL_CALLS(X)
#undef X
  std::string reason;  // why it cannot be used; empty when it can
};

[[nodiscard]] const Library& library();

// "out of resources (-5)".
[[nodiscard]] std::string text_of(cl_int error);
// Throws a failure with OpenCL's own word for the error.
void check(cl_int error, const char* what);

}  // namespace ridgeline::opencl
