#pragma once

// A program that is run as a child. It leads a process group of its own, which is ended as a whole
// with the object.

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

namespace ridgeline {

class ChildProcess {
 public:
  enum class Stream { inherited, nothing, piped };
  struct Options {
    // Piped: through a socket, which can be told not to raise SIGPIPE.
    Stream input = Stream::nothing;
    Stream output = Stream::piped, errors = Stream::inherited;
    // An environment variable that names one more descriptor to write to.
    std::string side_channel = {};
    // It is killed when the thread that started it ends, even by a signal.
    bool dies_with_owner = false;
  };

  // `words`: the program, looked for in PATH, and its arguments. Throws a failure when it cannot be
  // started.
  ChildProcess(std::vector<std::string> words, const Options& options);
  ~ChildProcess();
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  // Our ends of the pipes; -1: there is none, or it was closed.
  enum Pipe { input, output, errors, side };
  [[nodiscard]] int end_of(Pipe pipe) const { return ends_[pipe]; }
  void close(Pipe pipe);
  // Appends what there is in a pipe, and closes it at its end. What does not wait on a pipe first
  // waits here.
  void read_some(Pipe pipe, std::string& text);

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] bool running() const { return pid_ > 0; }
  void interrupt() const;  // SIGINT to the program alone
  // Whether it ends by itself within this time; it is left to be waited for.
  [[nodiscard]] bool ends_within(double seconds) const;
  // Waits for its end and gives its status as waitpid() does.
  int wait();
  // Ends the whole group, and waits.
  int end();

 private:
  pid_t pid_ = -1;
  int ends_[4] = {-1, -1, -1, -1};
};

// "exit code 3", "killed by signal 9 (SIGKILL)"; empty: it ended as it should.
[[nodiscard]] std::string ending_text(int status);

}  // namespace ridgeline
