#pragma once

// A child process that is asked and answers by lines of text, with a time-out for every answer.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/child_process.h"

namespace ridgeline {

class LineProcess {
 public:
  // Throws a failure when the program cannot be started.
  explicit LineProcess(const std::vector<std::string>& command);

  // Sends a line and waits for one. A process that ends, or that says nothing in time, is ended
  // with all that it started; the failure thrown tells which of both happened, with the last lines
  // of its standard error.
  [[nodiscard]] std::string ask(const std::string& line, double seconds);

  // Gives it a moment to end by itself, then ends it. Nothing happens the second time.
  void end(double seconds);

  [[nodiscard]] bool running() const { return child_.running(); }
  // That it has used so far; nothing where it has ended.
  [[nodiscard]] std::optional<double> processor_seconds() const;
  // "; its last output: ..." or nothing.
  [[nodiscard]] std::string last_words();

 private:
  using Time = std::chrono::steady_clock::time_point;
  // Waits for output of any kind; false when the time is up.
  bool wait_for_output(Time deadline);
  void read_errors();
  void send(const std::string& line, Time deadline);
  // Ends everything; how the process ended by itself, in words, or "it was ended".
  std::string reap();

  ChildProcess child_;
  std::string answers_;  // not yet taken
  std::string error_text_;
};

}  // namespace ridgeline
