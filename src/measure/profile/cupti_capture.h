#pragma once

// What launches put into a recording while it is made: asked of the recording itself, so that it
// is known without watching the device.

#include <cuda_runtime_api.h>

#include <set>
#include <string>
#include <vector>

#include "measure/profile/profile.h"

namespace ridgeline::cupti {

[[nodiscard]] bool is_recording(cudaStream_t stream);

class CaptureCensus {
 public:
  void restart();
  // Kernels, copies and fills that came into the recording since the last call. REQUIRES: the
  // stream is recording.
  [[nodiscard]] std::vector<Activity> added(cudaStream_t stream);
  // What went wrong in asking; empty: nothing. Then the counts are too small.
  [[nodiscard]] const std::string& problem() const { return problem_; }

 private:
  [[nodiscard]] bool worked(cudaError_t error);
  [[nodiscard]] std::vector<cudaGraphNode_t> nodes_of(cudaGraph_t graph);
  void add(cudaGraphNode_t node, std::vector<Activity>& list);

  std::set<cudaGraphNode_t> known_;
  std::string problem_;
};

}  // namespace ridgeline::cupti
