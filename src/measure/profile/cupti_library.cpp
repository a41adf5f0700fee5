#include "measure/profile/cupti_library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <vector>

#include "base/error.h"
#include "measure/profile/tool_version.h"

namespace ridgeline::cupti {
namespace {

template <typename Function>
void find(void* handle, const char* symbol, Function& function, std::string& missing) {
  function = reinterpret_cast<Function>(dlsym(handle, symbol));
  if (function == nullptr && missing.empty()) missing = symbol;
}

// Where the loader looks by itself, then where toolkits keep it.
std::vector<std::string> candidates() {
  const std::string own = fmt::format("libcupti.so.{}", CUDA_VERSION / 1000);
  std::vector<std::string> files = {own};
  std::vector<std::string> toolkits;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    const char* value = std::getenv(variable);
    if (value != nullptr && *value != '\0') toolkits.emplace_back(value);
  }
  toolkits.emplace_back("/usr/local/cuda");
  for (const std::string& toolkit : toolkits) {
    for (const char* folder : {"extras/CUPTI/lib64", "lib64", "lib"}) {
      files.push_back(fmt::format("{}/{}/{}", toolkit, folder, own));
      files.push_back(fmt::format("{}/{}/libcupti.so", toolkit, folder));
    }
  }
  // Of other versions, so that a refusal can name them.
  files.insert(files.end(), {"libcupti.so", "libcupti.so.13", "libcupti.so.12"});
  return files;
}

// Why an open library cannot be used; empty when it can.
std::string bind(void* handle, Library& library) {
  std::string missing;
  find(handle, "cuptiGetVersion", library.get_version, missing);
  find(handle, "cuptiGetResultString", library.result_string, missing);
  find(handle, "cuptiGetTimestamp", library.timestamp, missing);
  find(handle, "cuptiGetCallbackName", library.callback_name, missing);
  find(handle, "cuptiActivityRegisterCallbacks", library.register_callbacks, missing);
  find(handle, "cuptiActivityEnable", library.enable, missing);
  find(handle, "cuptiActivityDisable", library.disable, missing);
  find(handle, "cuptiActivityFlushAll", library.flush_all, missing);
  find(handle, "cuptiActivityGetNextRecord", library.next_record, missing);
  find(handle, "cuptiActivityGetNumDroppedRecords", library.dropped_records, missing);
  find(handle, "cuptiActivityPushExternalCorrelationId", library.push_id, missing);
  find(handle, "cuptiActivityPopExternalCorrelationId", library.pop_id, missing);
  if (!missing.empty()) return fmt::format("it has no function {}", missing);
  std::uint32_t version = 0;
  if (const CUptiResult result = library.get_version(&version); result != CUPTI_SUCCESS) {
    return fmt::format("it does not tell its version: {}", library.words(result));
  }
  return refuse_cupti_version(CUPTI_API_VERSION, version);
}

// It stays open until the program ends: its own thread may still be at work.
Library open_library() {
  std::string problem;
  for (const std::string& file : candidates()) {
    void* handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) continue;
    Library library;
    library.file = file;
    const std::string refusal = bind(handle, library);
    if (refusal.empty()) return library;
    if (problem.empty()) problem = fmt::format("{} cannot be used: {}", file, refusal);
    dlclose(handle);
  }
  Library none;
  none.unavailable = !problem.empty()
                         ? problem
                         : fmt::format(
                               "CUPTI was not found: neither the loader nor the CUDA toolkit has "
                               "libcupti.so.{}; set CUDA_HOME or LD_LIBRARY_PATH",
                               CUDA_VERSION / 1000);
  return none;
}

}  // namespace

std::string Library::words(CUptiResult result) const {
  switch (result) {
    case CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED:
    case CUPTI_ERROR_HARDWARE_BUSY:
    case CUPTI_ERROR_NOT_COMPATIBLE:
      return "another profiler (Nsight, PyTorch's, a debugger) is watching this program or the "
             "device; end it first";
    case CUPTI_ERROR_INSUFFICIENT_PRIVILEGES:
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES:
      return "the driver lets only administrators profile; run as root, or load the driver with "
             "NVreg_RestrictProfilingToAdminUsers=0";
    case CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED:
      return "the device is virtual and cannot be watched";
    case CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED:
      return "the device runs in confidential mode and cannot be watched";
    case CUPTI_ERROR_NOT_INITIALIZED:
      return "CUPTI cannot start: its version may not fit the driver";
    default:
      break;
  }
  const char* text = nullptr;
  if (result_string == nullptr || result_string(result, &text) != CUPTI_SUCCESS) text = nullptr;
  return text != nullptr ? std::string(text) : fmt::format("error {}", static_cast<int>(result));
}

void Library::check(CUptiResult result, const char* what) const {
  if (result != CUPTI_SUCCESS) fail("CUPTI: {}: {}", what, words(result));
}

const Library& library() {
  static const Library opened = open_library();
  return opened;
}

}  // namespace ridgeline::cupti
