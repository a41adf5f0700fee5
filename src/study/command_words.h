#pragma once

// The words of a command for one configuration of a part.

#include <string>
#include <vector>

#include "study/executors.h"
#include "study/expand.h"

namespace ridgeline::study {

struct CommandInput {
  const Part& part;
  const Configuration& configuration;
  // Several for `bench` and `inference`, one for the others.
  std::vector<ExecutorName> executors;
  std::string data;     // what --data takes; empty: the command's own
  std::string weights;  // a file; empty: none
  int threads = 0;
};
[[nodiscard]] std::vector<std::string> command_words(const CommandInput& input);

}  // namespace ridgeline::study
