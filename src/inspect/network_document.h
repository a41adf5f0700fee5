#pragma once

// A network as a document that stands for itself: its graph (graph/graph_json.h) with the model's
// name and settings. Peers get it, and files of it go to machines without Ridgeline.

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "models/model.h"

namespace ridgeline {

struct NetworkForm {
  std::int64_t batch = 1;
  bool training = true;                  // with dropout, batch statistics and auxiliary heads
  std::vector<std::string> freeze = {};  // as in StepSpec
};

[[nodiscard]] nlohmann::ordered_json network_document(const ModelConfig& model,
                                                      const NetworkForm& form);

}  // namespace ridgeline
