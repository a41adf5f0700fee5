#pragma once

// A network's weights as PyTorch keeps them: a state dict of torchvision's names.

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "graph/builder.h"
#include "train/weight_file.h"

namespace ridgeline {

struct StateDict {
  std::vector<WeightTensor> tensors;         // in the network's order
  std::deque<std::vector<std::byte>> owned;  // what they lie in
};

// The elements come from `source` where there is one, else they are the initial ones of the seed.
// PyTorch's layers count the batches they have seen, and load_state_dict wants the counters: those
// of `source`, or `batches`. Throws bad_input when `source` does not fit.
[[nodiscard]] StateDict state_dict(std::span<const Parameter> parameters, const std::string& model,
                                   const WeightFile* source, std::uint64_t seed,
                                   std::int64_t batches);

}  // namespace ridgeline
