#pragma once

// The one exception type of the project. Its message tells a user what was wrong, where, and what
// would be right; its kind decides the exit code of the program.

#include <fmt/core.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace ridgeline {

enum class ErrorKind {
  failure,       // the run failed: exit code 1
  bad_input,     // wrong use or wrong input: exit code 2
  lacks_memory,  // the work does not fit into this machine's memory: exit code 2
};

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  [[nodiscard]] ErrorKind kind() const { return kind_; }
  [[nodiscard]] int exit_code() const { return kind_ == ErrorKind::failure ? 1 : 2; }

 private:
  ErrorKind kind_;
};

// The user or a file is wrong.
template <typename... Args>
[[noreturn]] void bad_input(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::bad_input, fmt::format(format, std::forward<Args>(args)...));
}

// The work needs more memory than there is, found out before it began.
template <typename... Args>
[[noreturn]] void no_room(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::lacks_memory, fmt::format(format, std::forward<Args>(args)...));
}

// The run cannot go on: a disk is full, a library refused, memory ran out.
template <typename... Args>
[[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) {
  throw Error(ErrorKind::failure, fmt::format(format, std::forward<Args>(args)...));
}

// An invariant of our own; a broken one is a defect of the program, reported as a failure.
template <typename... Args>
void ensure(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) fail(format, std::forward<Args>(args)...);
}

}  // namespace ridgeline
