#pragma once

// A command that is run to its end. It ends with the program that started it, however that ends.

#include <functional>
#include <string>
#include <vector>

namespace ridgeline::study {

struct ChildOutcome {
  int code = 0;          // of its exit; 128 + n when signal n ended it
  bool stopped = false;  // because `go_on` said so
  std::string output;    // standard output
  std::string errors;    // the end of standard error
};

// `go_on` is asked several times a second. When it says no, the child gets SIGINT, and after some
// seconds SIGKILL. Throws a failure when the program cannot be started.
[[nodiscard]] ChildOutcome run_child(std::vector<std::string> words,
                                     const std::function<bool()>& go_on);

}  // namespace ridgeline::study
