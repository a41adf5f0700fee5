#pragma once

// One OpenCL device with the programs compiled for it. There is one Context for each device in a
// process, kept until its end: all Devices and all rows share its compiled kernels.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "devices/opencl_library.h"

namespace ridgeline::opencl {

// What kernels are shaped by, and what people read.
struct Properties {
  std::string name;  // "NVIDIA H200", "gfx1100"
  std::string vendor;
  std::string platform;  // with its version
  std::string version;   // "OpenCL 3.0 ..."
  std::string driver;
  bool cpu = false;  // computes on the host's cores, in the host's memory
  bool fp64 = false, fp16 = false, command_buffers = false;
  int compute_units = 0;
  double clock_mhz = 0.0;
  std::int64_t memory_bytes = 0, largest_allocation = 0, local_bytes = 0, cache_bytes = 0;
  std::size_t work_group = 0;  // the largest
};

// Which kernel of which file. Files are named from src/backends/opencl/ on: "kernels/add.cl".
struct Code {
  const char* file;
  const char* kernel;
  std::string options = {};  // for the compiler: "-DTILE=4"
};

class Context {
 public:
  Context(cl_platform_id platform, cl_device_id device);
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  [[nodiscard]] const Properties& properties() const { return properties_; }
  [[nodiscard]] cl_context handle();
  [[nodiscard]] cl_device_id device() const { return device_; }
  [[nodiscard]] cl_platform_id platform() const { return platform_; }

  // The compiled kernel; the first call for a file and its options compiles the program or takes it
  // from the disk. Throws a failure with the build log. Its arguments belong to the next launch.
  [[nodiscard]] cl_kernel kernel(const Code& code);
  // Another object of the same kernel, to be released by the caller.
  [[nodiscard]] cl_kernel new_kernel(const Code& code);
  // Why a program does not compile here, with the first lines of the build log; empty when it does.
  [[nodiscard]] std::string refuse(const Code& code);
  // The largest work-group that a kernel can run with here.
  [[nodiscard]] std::size_t work_group_of(const Code& code);

 private:
  struct Program {
    cl_program handle = nullptr;
    std::string error;
    std::map<std::string, cl_kernel> kernels;
  };
  Program& program(const Code& code);
  Program& compiled(const Code& code);  // throws where it does not compile
  Program build(const std::string& source, const std::string& options);
  cl_program from_disk(const std::string& file, const std::string& options);
  void to_disk(const std::string& file, cl_program program) const;

  cl_platform_id platform_;
  cl_device_id device_;
  cl_context context_ = nullptr;
  Properties properties_;
  std::map<std::string, Program> programs_;  // by file and options
};

// All devices of all platforms, in the loader's order: "opencl:0" is the first.
[[nodiscard]] const std::vector<std::unique_ptr<Context>>& contexts();
// Why there is none; empty when there is one.
[[nodiscard]] std::string unavailable();

// The device that was last made: rows ask it what they may be made for.
[[nodiscard]] Context& current();
void make_current(Context& context);

}  // namespace ridgeline::opencl
