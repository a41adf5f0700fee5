#pragma once

// How a difference op by op is shown.

#include <string>

#include "documents/difference.h"

namespace ridgeline::cli {

class Option;
class Parser;

// --by and --top as words and numbers of the command line.
struct DifferenceArguments {
  std::string by = "step";
  std::optional<std::int64_t> top;
};
// They make sense only with the option `with`.
void add_difference_options(Parser& command, DifferenceArguments& arguments, const Option* with);
// Throws bad_input.
[[nodiscard]] DifferenceOptions difference_options(const DifferenceArguments& arguments,
                                                   bool force);

[[nodiscard]] std::string difference_text(const StepDifference& difference);

}  // namespace ridgeline::cli
