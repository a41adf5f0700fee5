#include "study/child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

#include "base/error.h"

namespace ridgeline::study {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kPollMilliseconds = 100;
constexpr std::size_t kErrorBytes = 16384;
// For a command that was asked to end: it finishes its iteration and writes its results.
constexpr std::chrono::seconds kPatience{20};

struct Pipe {
  Pipe() {
    if (pipe2(ends, O_CLOEXEC) != 0) fail("no pipe for a command: {}", std::strerror(errno));
  }
  ~Pipe() {
    for (const int end : ends) {
      if (end >= 0) close(end);
    }
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void close_end(int which) {
    if (ends[which] >= 0) close(ends[which]);
    ends[which] = -1;
  }
  int ends[2] = {-1, -1};
};

// In the child, between fork and exec: only what is safe there.
[[noreturn]] void become(char** argv, pid_t parent, int output, int errors) {
  // Ends with its parent, even when that is killed.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(126);
  // A group of its own: Ctrl-C reaches the study alone, which passes it on once.
  setpgid(0, 0);
  const int nothing = open("/dev/null", O_RDONLY);
  if (nothing >= 0) dup2(nothing, STDIN_FILENO);
  dup2(output, STDOUT_FILENO);
  dup2(errors, STDERR_FILENO);
  execv(argv[0], argv);
  _exit(127);
}

// Appends what there is; false at the end.
bool read_some(int from, std::string& text) {
  char buffer[65536];
  const ssize_t count = read(from, buffer, sizeof(buffer));
  if (count < 0) return errno == EINTR || errno == EAGAIN;
  text.append(buffer, static_cast<std::size_t>(count));
  return count > 0;
}

}  // namespace

ChildOutcome run_child(std::vector<std::string> words, const std::function<bool()>& go_on) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  Pipe output, errors;
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) fail("no process could be started: {}", std::strerror(errno));
  if (pid == 0) become(argv.data(), parent, output.ends[1], errors.ends[1]);
  output.close_end(1);
  errors.close_end(1);

  ChildOutcome outcome;
  Clock::time_point deadline;
  bool killed = false;
  while (output.ends[0] >= 0 || errors.ends[0] >= 0) {
    pollfd waiting[2] = {{output.ends[0], POLLIN, 0}, {errors.ends[0], POLLIN, 0}};
    if (poll(waiting, 2, kPollMilliseconds) > 0) {
      if (waiting[0].revents != 0 && !read_some(output.ends[0], outcome.output)) {
        output.close_end(0);
      }
      if (waiting[1].revents != 0 && !read_some(errors.ends[0], outcome.errors)) {
        errors.close_end(0);
      }
      if (outcome.errors.size() > kErrorBytes) {
        outcome.errors.erase(0, outcome.errors.size() - kErrorBytes);
      }
    }
    if (!outcome.stopped && !go_on()) {
      outcome.stopped = true;
      deadline = Clock::now() + kPatience;
      (void)kill(pid, SIGINT);
    }
    if (outcome.stopped && !killed && Clock::now() > deadline) {
      killed = true;
      (void)kill(-pid, SIGKILL);
      // What the command itself had started may keep the pipes open.
      break;
    }
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  outcome.code = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  return outcome;
}

}  // namespace ridgeline::study
