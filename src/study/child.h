#pragma once

// A command that is run to its end. It ends with the program that started it, however that ends.

#include <functional>
#include <string>
#include <vector>

#include "lab/outcome.h"

namespace ridgeline::study {

struct ChildEnding {
  bool stopped = false;  // because `go_on` said so
  // What the command told. One that was killed or told nothing has failed: the reason is then its
  // signal or exit code, with the last line of its standard error.
  Outcome outcome = {};
};

// `go_on` is asked several times a second. When it says no, the child gets SIGINT, and after some
// seconds SIGKILL. Throws a failure when the program cannot be started.
[[nodiscard]] ChildEnding run_child(std::vector<std::string> words,
                                    const std::function<bool()>& go_on);

}  // namespace ridgeline::study
