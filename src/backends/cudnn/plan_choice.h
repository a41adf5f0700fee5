#pragma once

// Which of the libraries' proposals computes a product: the fastest of some, by measuring. A choice
// is made once for a product and remembered, in the process and in a file. Without
// measuring it is the first proposal.

#include <memory>
#include <string>

#include "backends/cudnn/executable.h"

namespace ridgeline::cudnn {

struct Choice {
  std::shared_ptr<const Executable> executable;  // null: no library computes it
  double seconds = 0.0;                          // 0: not measured
};

// Whether a library computes the product. Cheap beside a choice: nothing is run.
[[nodiscard]] bool can_compute(const Product& product);

// REQUIRES, for a new product: nothing is being captured.
[[nodiscard]] const Choice& choice_for(const Product& product, bool measure);

// For strides that are known only now. The executable of this name, or the first that needs at most
// so much workspace; null when there is none. Nothing is run.
[[nodiscard]] std::shared_ptr<const Executable> executable_named(const Product& product,
                                                                 const std::string& name);
[[nodiscard]] std::shared_ptr<const Executable> executable_within(const Product& product,
                                                                  std::size_t workspace_bytes);

}  // namespace ridgeline::cudnn
