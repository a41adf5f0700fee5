#pragma once

#include <string>
#include <vector>

namespace ridgeline::cli {

// The words that this process was started with, the program first.
[[nodiscard]] std::vector<std::string> command_words();
// The same as one line, words quoted where they need it.
[[nodiscard]] std::string command_line_text();
// Where the program's own file lies, to start it again.
[[nodiscard]] std::string own_program();

}  // namespace ridgeline::cli
