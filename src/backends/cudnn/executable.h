#pragma once

// One way of a library to compute a product, and a proposal of such a way.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "backends/cudnn/library.h"
#include "backends/cudnn/product.h"

namespace ridgeline::cudnn {

class Executable {
 public:
  virtual ~Executable() = default;
  // Queues the work. REQUIRES: operands as the product describes them, their addresses multiples
  // of kAlignment, the workspace's one of kWorkspaceAlignment.
  virtual void execute(const Operands& operands, std::byte* workspace, Stream stream) const = 0;

  std::string name;
  std::size_t workspace_bytes = 0;
};

inline constexpr std::size_t kWorkspaceAlignment = 256;

struct Candidate {
  std::string name;  // the same for the same choice of a library, in every process
  // Null when the library refuses after all. May take long: some engines are compiled now.
  std::function<std::shared_ptr<const Executable>()> build;
};

// Of cuDNN: engines that keep to the product's accuracy and always give the same bits, best guess
// first, at most `most`.
[[nodiscard]] std::vector<Candidate> engine_candidates(const Product& product, std::size_t most);

// Of cuBLASLt; none for what is not one matrix product.
[[nodiscard]] std::vector<Candidate> matmul_candidates(const Product& product, std::size_t most);

}  // namespace ridgeline::cudnn
