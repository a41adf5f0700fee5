#include "backends/cudnn/library.h"

#include <cuda_runtime_api.h>

#include <array>
#include <map>

#include "base/error.h"
#include "base/shared_library.h"

namespace ridgeline::cudnn {
namespace {

constexpr std::size_t kOldestCudnn = 90000;

struct Libraries {
  CudnnFunctions cudnn;
  CublasLtFunctions cublas_lt;
  std::string problem;
};

std::string open_cudnn(CudnnFunctions& f) {
  SharedLibrary library({"libcudnn.so.9"});
  library.find("cudnnGetVersion", f.get_version);
  library.find("cudnnGetErrorString", f.error_string);
  library.find("cudnnGetLastErrorString", f.last_error_string);
  library.find("cudnnCreate", f.create);
  library.find("cudnnSetStream", f.set_stream);
  library.find("cudnnBackendCreateDescriptor", f.create_descriptor);
  library.find("cudnnBackendDestroyDescriptor", f.destroy_descriptor);
  library.find("cudnnBackendSetAttribute", f.set_attribute);
  library.find("cudnnBackendGetAttribute", f.get_attribute);
  library.find("cudnnBackendFinalize", f.finalize);
  library.find("cudnnBackendExecute", f.execute);
  if (!library.problem().empty()) return "cuDNN 9 cannot be opened: " + library.problem();
  if (f.get_version() >= kOldestCudnn) return {};
  return fmt::format("cuDNN {} is too old: 9.0 is needed", f.get_version());
}

std::string open_cublas_lt(CublasLtFunctions& f) {
  const int own = CUDART_VERSION / 1000;
  const int other = own == 12 ? 13 : 12;
  SharedLibrary library(
      {fmt::format("libcublasLt.so.{}", own), fmt::format("libcublasLt.so.{}", other)});
  library.find("cublasLtGetVersion", f.get_version);
  library.find("cublasLtGetStatusString", f.status_string);
  library.find("cublasLtCreate", f.create);
  library.find("cublasLtMatmulDescCreate", f.create_matmul);
  library.find("cublasLtMatmulDescDestroy", f.destroy_matmul);
  library.find("cublasLtMatmulDescSetAttribute", f.set_matmul);
  library.find("cublasLtMatrixLayoutCreate", f.create_layout);
  library.find("cublasLtMatrixLayoutDestroy", f.destroy_layout);
  library.find("cublasLtMatmulPreferenceCreate", f.create_preference);
  library.find("cublasLtMatmulPreferenceDestroy", f.destroy_preference);
  library.find("cublasLtMatmulPreferenceSetAttribute", f.set_preference);
  library.find("cublasLtMatmulAlgoGetHeuristic", f.get_heuristic);
  library.find("cublasLtMatmulAlgoConfigGetAttribute", f.get_algorithm);
  library.find("cublasLtMatmul", f.matmul);
  if (library.problem().empty()) return {};
  return "cuBLASLt cannot be opened: " + library.problem();
}

const Libraries& libraries() {
  static const Libraries opened = [] {
    Libraries l;
    l.problem = open_cudnn(l.cudnn);
    if (l.problem.empty()) l.problem = open_cublas_lt(l.cublas_lt);
    return l;
  }();
  return opened;
}

// Left to the end of the process: the driver may be gone before our static objects are.
struct Handles {
  cudnnHandle_t cudnn = nullptr;
  Stream stream = nullptr;
  cublasLtHandle_t cublas_lt = nullptr;
};

Handles& handles() {
  static std::map<int, Handles> of_devices;
  int device = 0;
  check(cudaGetDevice(&device), "asking for the device");
  return of_devices[device];
}

std::string version_text(std::size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::string library_problem() { return libraries().problem; }

std::string library_version() {
  return fmt::format("{} cublasLt {}", version_text(dnn().get_version()),
                     version_text(lt().get_version()));
}

const CudnnFunctions& dnn() { return libraries().cudnn; }
const CublasLtFunctions& lt() { return libraries().cublas_lt; }

cudnnHandle_t cudnn_handle() {
  Handles& own = handles();
  if (own.cudnn == nullptr) check(dnn().create(&own.cudnn), "starting");
  return own.cudnn;
}

cudnnHandle_t cudnn_handle(Stream stream) {
  const cudnnHandle_t handle = cudnn_handle();
  Handles& own = handles();
  if (own.stream != stream) {
    check(dnn().set_stream(handle, stream), "choosing a stream");
    own.stream = stream;
  }
  return handle;
}

cublasLtHandle_t lt_handle() {
  Handles& own = handles();
  if (own.cublas_lt == nullptr) check(lt().create(&own.cublas_lt), "starting");
  return own.cublas_lt;
}

void check(cudnnStatus_t status, const char* what) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 1024> words{};
  dnn().last_error_string(words.data(), words.size());
  fail("cuDNN: {}: {} {}", what, dnn().error_string(status), words.data());
}

void check(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail("cuBLASLt: {}: {}", what, lt().status_string(status));
}

}  // namespace ridgeline::cudnn
