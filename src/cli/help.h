#pragma once

// What the parser knows of commands and options, as help, as a man page and for shells.

#include <string>
#include <string_view>

#include "cli/parser.h"

namespace ridgeline::cli {

// The columns that help is wrapped to: those of the terminal, at most 100.
[[nodiscard]] std::size_t help_width();

// --help of a command.
[[nodiscard]] std::string help_text(const CommandInfo& command, std::size_t width);

// The whole program as one page in the language of man.
[[nodiscard]] std::string man_page(const CommandInfo& program, std::string_view version);

// A script that completes commands, options and values. Throws bad_input for a shell other than
// bash, zsh and fish.
[[nodiscard]] std::string completion_script(const CommandInfo& program, const std::string& shell);

}  // namespace ridgeline::cli
