#pragma once

// cuDNN and cuBLASLt, opened when they are first needed: a build with them runs on machines that
// lack them. Only the functions that this backend calls are looked up.

#include <cublasLt.h>
#include <cudnn_graph.h>

#include <string>

#include "backends/cuda/launch.h"
#include "devices/cuda_check.h"

namespace ridgeline::cudnn {

using cuda::Stream;

struct CudnnFunctions {
  decltype(&::cudnnGetVersion) get_version = nullptr;
  decltype(&::cudnnGetErrorString) error_string = nullptr;
  decltype(&::cudnnGetLastErrorString) last_error_string = nullptr;
  decltype(&::cudnnCreate) create = nullptr;
  decltype(&::cudnnSetStream) set_stream = nullptr;
  decltype(&::cudnnBackendCreateDescriptor) create_descriptor = nullptr;
  decltype(&::cudnnBackendDestroyDescriptor) destroy_descriptor = nullptr;
  decltype(&::cudnnBackendSetAttribute) set_attribute = nullptr;
  decltype(&::cudnnBackendGetAttribute) get_attribute = nullptr;
  decltype(&::cudnnBackendFinalize) finalize = nullptr;
  decltype(&::cudnnBackendExecute) execute = nullptr;
};

struct CublasLtFunctions {
  decltype(&::cublasLtGetVersion) get_version = nullptr;
  decltype(&::cublasLtGetStatusString) status_string = nullptr;
  decltype(&::cublasLtCreate) create = nullptr;
  decltype(&::cublasLtMatmulDescCreate) create_matmul = nullptr;
  decltype(&::cublasLtMatmulDescDestroy) destroy_matmul = nullptr;
  decltype(&::cublasLtMatmulDescSetAttribute) set_matmul = nullptr;
  decltype(&::cublasLtMatrixLayoutCreate) create_layout = nullptr;
  decltype(&::cublasLtMatrixLayoutDestroy) destroy_layout = nullptr;
  decltype(&::cublasLtMatmulPreferenceCreate) create_preference = nullptr;
  decltype(&::cublasLtMatmulPreferenceDestroy) destroy_preference = nullptr;
  decltype(&::cublasLtMatmulPreferenceSetAttribute) set_preference = nullptr;
  decltype(&::cublasLtMatmulAlgoGetHeuristic) get_heuristic = nullptr;
  decltype(&::cublasLtMatmulAlgoConfigGetAttribute) get_algorithm = nullptr;
  decltype(&::cublasLtMatmul) matmul = nullptr;
};

// Why the libraries cannot be used here; empty when they can.
[[nodiscard]] std::string library_problem();
// "9.19.0 cublasLt 13.1.0"; REQUIRES, like all that follows: there is no such problem.
[[nodiscard]] std::string library_version();

[[nodiscard]] const CudnnFunctions& dnn();
[[nodiscard]] const CublasLtFunctions& lt();

// The current device's handles, made on first use. cuDNN's works in the stream given last.
[[nodiscard]] cudnnHandle_t cudnn_handle();
[[nodiscard]] cudnnHandle_t cudnn_handle(Stream stream);
[[nodiscard]] cublasLtHandle_t lt_handle();

// Throw a failure with the library's own words when a call did not succeed.
void check(cudnnStatus_t status, const char* what);
void check(cublasStatus_t status, const char* what);
using cuda::check;

}  // namespace ridgeline::cudnn
