#include "measure/profile/cupti_capture.h"

namespace ridgeline::cupti {
namespace {

cudaError_t graph_of(cudaStream_t stream, cudaGraph_t& graph) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
#if CUDART_VERSION >= 13000
  return cudaStreamGetCaptureInfo(stream, &status, nullptr, &graph, nullptr, nullptr, nullptr);
#else
  return cudaStreamGetCaptureInfo_v2(stream, &status, nullptr, &graph, nullptr, nullptr);
#endif
}

}  // namespace

bool is_recording(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  return cudaStreamIsCapturing(stream, &status) == cudaSuccess &&
         status == cudaStreamCaptureStatusActive;
}

void CaptureCensus::restart() {
  known_.clear();
  problem_.clear();
}

bool CaptureCensus::worked(cudaError_t error) {
  if (error == cudaSuccess) return true;
  if (problem_.empty()) problem_ = cudaGetErrorString(error);
  (void)cudaGetLastError();  // or the next launch would report it
  return false;
}

std::vector<cudaGraphNode_t> CaptureCensus::nodes_of(cudaGraph_t graph) {
  std::size_t count = 0;
  if (!worked(cudaGraphGetNodes(graph, nullptr, &count)) || count == 0) return {};
  std::vector<cudaGraphNode_t> nodes(count);
  if (!worked(cudaGraphGetNodes(graph, nodes.data(), &count))) return {};
  nodes.resize(count);
  return nodes;
}

void CaptureCensus::add(cudaGraphNode_t node, std::vector<Activity>& list) {
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;
  if (!worked(cudaGraphNodeGetType(node, &type))) return;
  if (type == cudaGraphNodeTypeKernel) list.push_back(Activity::kernel);
  if (type == cudaGraphNodeTypeMemcpy) list.push_back(Activity::copy);
  if (type == cudaGraphNodeTypeMemset) list.push_back(Activity::fill);
  if (type != cudaGraphNodeTypeGraph) return;  // events and the like leave no record
  cudaGraph_t child = nullptr;
  if (!worked(cudaGraphChildGraphNodeGetGraph(node, &child))) return;
  for (const cudaGraphNode_t inner : nodes_of(child)) add(inner, list);
}

std::vector<Activity> CaptureCensus::added(cudaStream_t stream) {
  cudaGraph_t graph = nullptr;
  if (!worked(graph_of(stream, graph)) || graph == nullptr) return {};
  std::vector<Activity> list;
  for (const cudaGraphNode_t node : nodes_of(graph)) {
    if (known_.insert(node).second) add(node, list);
  }
  return list;
}

}  // namespace ridgeline::cupti
