#include "cli/terminal.h"

#include "cli/output.h"

namespace ridgeline::cli {

void Terminal::note(const std::string& line) {
  bar_.clear();
  message(line + '\n');
}

void Terminal::plan(const std::string& text) { json_ ? message(text) : print(text); }

bool Terminal::go_on() {
  // Before the first iteration there is nothing to print: the signal then ends the program.
  if (!interrupt_) interrupt_.emplace();
  return !interrupt_->raised();
}

}  // namespace ridgeline::cli
