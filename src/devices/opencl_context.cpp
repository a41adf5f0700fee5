#include "devices/opencl_context.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <set>
#include <string_view>

#include "base/cache_folder.h"
#include "base/durable_file.h"
#include "base/embedded.h"
#include "base/error.h"
#include "base/hash.h"

namespace ridgeline::opencl {
namespace {

// Kernels ask for nothing beyond OpenCL 1.2.
constexpr std::string_view kStandard = "-cl-std=CL1.2";

std::string text_info(cl_device_id device, cl_device_info what) {
  std::size_t size = 0;
  if (library().clGetDeviceInfo(device, what, 0, nullptr, &size) != CL_SUCCESS) return {};
  std::string text(size, '\0');
  check(library().clGetDeviceInfo(device, what, size, text.data(), nullptr), "asking the device");
  return text.substr(0, text.find('\0'));
}

std::string text_info(cl_platform_id platform, cl_platform_info what) {
  std::size_t size = 0;
  if (library().clGetPlatformInfo(platform, what, 0, nullptr, &size) != CL_SUCCESS) return {};
  std::string text(size, '\0');
  check(library().clGetPlatformInfo(platform, what, size, text.data(), nullptr),
        "asking the platform");
  return text.substr(0, text.find('\0'));
}

template <typename T>
T info(cl_device_id device, cl_device_info what) {
  T value{};
  check(library().clGetDeviceInfo(device, what, sizeof(T), &value, nullptr), "asking the device");
  return value;
}

Properties properties_of(cl_platform_id platform, cl_device_id device) {
  const std::string extensions = " " + text_info(device, CL_DEVICE_EXTENSIONS) + " ";
  const auto has = [&](const char* name) {
    return extensions.find(fmt::format(" {} ", name)) != std::string::npos;
  };
  Properties properties;
  properties.name = text_info(device, CL_DEVICE_NAME);
  properties.vendor = text_info(device, CL_DEVICE_VENDOR);
  properties.platform =
      text_info(platform, CL_PLATFORM_NAME) + ", " + text_info(platform, CL_PLATFORM_VERSION);
  properties.version = text_info(device, CL_DEVICE_VERSION);
  properties.driver = text_info(device, CL_DRIVER_VERSION);
  properties.cpu = (info<cl_device_type>(device, CL_DEVICE_TYPE) & CL_DEVICE_TYPE_CPU) != 0;
  properties.fp64 = has("cl_khr_fp64");
  properties.fp16 = has("cl_khr_fp16");
  properties.command_buffers = has("cl_khr_command_buffer");
  properties.compute_units = static_cast<int>(info<cl_uint>(device, CL_DEVICE_MAX_COMPUTE_UNITS));
  properties.clock_mhz = info<cl_uint>(device, CL_DEVICE_MAX_CLOCK_FREQUENCY);
  const auto bytes = [&](cl_device_info what) {
    return static_cast<std::int64_t>(info<cl_ulong>(device, what));
  };
  properties.memory_bytes = bytes(CL_DEVICE_GLOBAL_MEM_SIZE);
  properties.largest_allocation = bytes(CL_DEVICE_MAX_MEM_ALLOC_SIZE);
  properties.local_bytes = bytes(CL_DEVICE_LOCAL_MEM_SIZE);
  properties.cache_bytes = bytes(CL_DEVICE_GLOBAL_MEM_CACHE_SIZE);
  properties.work_group = info<std::size_t>(device, CL_DEVICE_MAX_WORK_GROUP_SIZE);
  return properties;
}

// A file with the files that it includes put in their place, each once.
std::string source_of(const std::string& name, std::set<std::string>& seen) {
  if (!seen.insert(name).second) return {};
  const auto text = embedded_file("src/backends/opencl/" + name);
  ensure(text.has_value(), "the program holds no OpenCL source '{}'", name);
  constexpr std::string_view kInclude = "#include \"";
  std::string source;
  for (std::size_t at = 0; at < text->size();) {
    const std::size_t end = std::min(text->find('\n', at), text->size());
    const std::string_view line = text->substr(at, end - at);
    if (line.starts_with(kInclude)) {
      const std::string_view rest = line.substr(kInclude.size());
      source += source_of(std::string(rest.substr(0, rest.find('"'))), seen);
    } else {
      source += std::string(line) + '\n';
    }
    at = end + 1;
  }
  return source;
}

std::string build_log(cl_program program, cl_device_id device) {
  std::size_t size = 0;
  const auto what = static_cast<cl_program_build_info>(CL_PROGRAM_BUILD_LOG);
  if (library().clGetProgramBuildInfo(program, device, what, 0, nullptr, &size) != CL_SUCCESS) {
    return {};
  }
  std::string log(size, '\0');
  (void)library().clGetProgramBuildInfo(program, device, what, size, log.data(), nullptr);
  return log.substr(0, log.find('\0'));
}

struct Found {
  std::vector<std::unique_ptr<Context>> contexts;
  std::string reason;
};

Found find_devices() {
  Found found;
  found.reason = library().reason;
  if (!found.reason.empty()) return found;
  cl_uint count = 0;
  // The loader tells an error where no driver is registered.
  if (library().clGetPlatformIDs(0, nullptr, &count) != CL_SUCCESS || count == 0) {
    found.reason =
        "no OpenCL platform was found: no driver is registered in /etc/OpenCL/vendors (see "
        "docs/backends/opencl.md)";
    return found;
  }
  std::vector<cl_platform_id> platforms(count);
  check(library().clGetPlatformIDs(count, platforms.data(), nullptr), "listing the platforms");
  for (const cl_platform_id platform : platforms) {
    cl_uint devices = 0;
    if (library().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, nullptr, &devices) !=
        CL_SUCCESS) {
      continue;  // a platform without devices
    }
    std::vector<cl_device_id> ids(devices);
    check(library().clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, devices, ids.data(), nullptr),
          "listing the devices");
    for (const cl_device_id id : ids) {
      found.contexts.push_back(std::make_unique<Context>(platform, id));
    }
  }
  if (found.contexts.empty()) {
    found.reason = fmt::format("none of the {} OpenCL platforms has a device", count);
  }
  return found;
}

// Kept to the end: devices in static variables still use it while the program ends.
const Found& found() {
  static const Found* const devices = new Found(find_devices());
  return *devices;
}

Context*& current_context() {
  static Context* context = nullptr;
  return context;
}

}  // namespace

Context::Context(cl_platform_id platform, cl_device_id device)
    : platform_(platform), device_(device), properties_(properties_of(platform, device)) {}

cl_context Context::handle() {
  if (context_ == nullptr) {
    cl_int error = CL_SUCCESS;
    context_ = library().clCreateContext(nullptr, 1, &device_, nullptr, nullptr, &error);
    check(error, "a context");
  }
  return context_;
}

Context::Program& Context::compiled(const Code& code) {
  Program& made = program(code);
  if (!made.error.empty()) {
    fail("OpenCL: {} does not compile on {}: {}", code.file, properties_.name, made.error);
  }
  return made;
}

cl_kernel Context::kernel(const Code& code) {
  cl_kernel& kernel = compiled(code).kernels[code.kernel];
  if (kernel == nullptr) kernel = new_kernel(code);
  return kernel;
}

cl_kernel Context::new_kernel(const Code& code) {
  cl_int error = CL_SUCCESS;
  cl_kernel kernel = library().clCreateKernel(compiled(code).handle, code.kernel, &error);
  check(error, code.kernel);
  return kernel;
}

std::string Context::refuse(const Code& code) {
  const Program& made = program(code);
  if (made.error.empty()) return {};
  constexpr std::size_t kShown = 400;
  return fmt::format("{} does not compile on {}: {}", code.file, properties_.name,
                     made.error.substr(0, kShown));
}

std::size_t Context::work_group_of(const Code& code) {
  std::size_t size = 0;
  check(library().clGetKernelWorkGroupInfo(kernel(code), device_, CL_KERNEL_WORK_GROUP_SIZE,
                                           sizeof(size), &size, nullptr),
        "asking for the largest work-group");
  return size;
}

Context::Program& Context::program(const Code& code) {
  const std::string key = fmt::format("{} {}", code.file, code.options);
  const auto known = programs_.find(key);
  if (known != programs_.end()) return known->second;
  std::set<std::string> seen;
  const std::string source = source_of(code.file, seen);
  const std::string options = fmt::format("{} {}", kStandard, code.options);
  return programs_[key] = build(source, options);
}

Context::Program Context::build(const std::string& source, const std::string& options) {
  // Whatever may change what the compiler makes of a source.
  const std::string key = fmt::format("{}|{}|{}|{}|{}|{}", properties_.platform, properties_.name,
                                      properties_.version, properties_.driver, options, source);
  const std::filesystem::path folder = cache_folder();
  const std::string file =
      folder.empty() ? "" : (folder / "opencl" / fmt::format("{:016x}.bin", hash_of(key))).string();
  Program program;
  program.handle = from_disk(file, options);
  if (program.handle != nullptr) return program;
  const char* text = source.c_str();
  cl_int error = CL_SUCCESS;
  program.handle = library().clCreateProgramWithSource(handle(), 1, &text, nullptr, &error);
  check(error, "a program");
  error = library().clBuildProgram(program.handle, 1, &device_, options.c_str(), nullptr, nullptr);
  if (error == CL_SUCCESS) {
    to_disk(file, program.handle);
  } else {
    program.error = build_log(program.handle, device_);
    if (program.error.empty()) program.error = text_of(error);
  }
  return program;
}

// Null where there is none, or where the driver does not take it back.
cl_program Context::from_disk(const std::string& file, const std::string& options) {
  std::ifstream stream(file, std::ios::binary);
  if (file.empty() || !stream) return nullptr;
  const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  const auto* data = reinterpret_cast<const unsigned char*>(bytes.data());
  const std::size_t size = bytes.size();
  cl_int status = CL_SUCCESS, error = CL_SUCCESS;
  cl_program program =
      library().clCreateProgramWithBinary(handle(), 1, &device_, &size, &data, &status, &error);
  if (error != CL_SUCCESS || status != CL_SUCCESS) return nullptr;
  if (library().clBuildProgram(program, 1, &device_, options.c_str(), nullptr, nullptr) ==
      CL_SUCCESS) {
    return program;
  }
  (void)library().clReleaseProgram(program);
  return nullptr;
}

void Context::to_disk(const std::string& file, cl_program program) const {
  std::size_t size = 0;
  if (file.empty() ||
      library().clGetProgramInfo(program, CL_PROGRAM_BINARY_SIZES, sizeof(size), &size, nullptr) !=
          CL_SUCCESS ||
      size == 0) {
    return;
  }
  std::string bytes(size, '\0');
  auto* data = reinterpret_cast<unsigned char*>(bytes.data());
  if (library().clGetProgramInfo(program, CL_PROGRAM_BINARIES, sizeof(data), &data, nullptr) !=
      CL_SUCCESS) {
    return;
  }
  std::error_code ignored;
  std::filesystem::create_directories(std::filesystem::path(file).parent_path(), ignored);
  try {
    write_durably(file, bytes);
  } catch (const Error&) {
    // Without the cache the next run compiles again.
  }
}

const std::vector<std::unique_ptr<Context>>& contexts() { return found().contexts; }

std::string unavailable() { return found().reason; }

Context& current() {
  if (current_context() == nullptr) {
    ensure(!contexts().empty(), "there is no OpenCL device: {}", unavailable());
    make_current(*contexts().front());
  }
  return *current_context();
}

void make_current(Context& context) { current_context() = &context; }

}  // namespace ridgeline::opencl
