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
#include "base/text.h"

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

// Words as exec takes them. REQUIRES: the words stay where they are.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(int outcome) {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) all.emplace_back(*each);
  all.push_back(fmt::format("{}={}", kOutcomeVariable, outcome));
  return all;
}

// In the child, between fork and exec: only what is safe there.
[[noreturn]] void become(char** argv, char** environment, pid_t parent, int outcome, int errors) {
  // Ends with its parent, even when that is killed.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(126);
  // A group of its own: Ctrl-C reaches the study alone, which passes it on once.
  setpgid(0, 0);
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nothing >= 0) {
    dup2(nothing, STDIN_FILENO);
    dup2(nothing, STDOUT_FILENO);
  }
  dup2(errors, STDERR_FILENO);
  fcntl(outcome, F_SETFD, 0);  // the only one of the pipes' ends that it keeps
  execve(argv[0], argv, environment);
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

std::string last_line(std::string_view text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return {};
  text = text.substr(0, end + 1);
  const std::size_t before = text.find_last_of("\r\n");
  return std::string(before == std::string_view::npos ? text : text.substr(before + 1));
}

std::string ending_text(int status, const std::string& errors) {
  std::string text = WIFSIGNALED(status) ? fmt::format("ended by signal {}", WTERMSIG(status))
                                         : fmt::format("exit code {}", WEXITSTATUS(status));
  if (const std::string words = last_line(errors); !words.empty()) text += ": " + words;
  return text;
}

Outcome outcome_of(int status, const std::string& told, const std::string& errors) {
  using enum ItemStatus;
  std::optional<Outcome> outcome = parse_outcome(told);
  // A process can still fail after it told that all is done.
  const bool well = WIFEXITED(status) && WEXITSTATUS(status) == 0;
  const bool truth = outcome && !WIFSIGNALED(status) && well == (outcome->status == done);
  if (!truth) outcome = Outcome{failed};
  if (outcome->status != failed || !outcome->reason.empty()) return *outcome;
  std::vector<std::string> reasons;
  for (const CandidateOutcome& each : outcome->failed) {
    reasons.push_back(fmt::format("{} on {}: {}", each.backend, each.device, each.reason));
  }
  outcome->reason = reasons.empty() ? ending_text(status, errors) : joined(reasons, "; ");
  return *outcome;
}

}  // namespace

ChildEnding run_child(std::vector<std::string> words, const std::function<bool()>& go_on) {
  Pipe outcome, errors;
  std::vector<std::string> variables = environment_with(outcome.ends[1]);
  std::vector<char*> argv = pointers_to(words), environment = pointers_to(variables);
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) fail("no process could be started: {}", std::strerror(errno));
  if (pid == 0) become(argv.data(), environment.data(), parent, outcome.ends[1], errors.ends[1]);
  outcome.close_end(1);
  errors.close_end(1);

  std::string told, error_text;
  ChildEnding ending;
  Clock::time_point deadline;
  while (outcome.ends[0] >= 0 || errors.ends[0] >= 0) {
    pollfd waiting[2] = {{outcome.ends[0], POLLIN, 0}, {errors.ends[0], POLLIN, 0}};
    if (poll(waiting, 2, kPollMilliseconds) > 0) {
      if (waiting[0].revents != 0 && !read_some(outcome.ends[0], told)) outcome.close_end(0);
      if (waiting[1].revents != 0 && !read_some(errors.ends[0], error_text)) errors.close_end(0);
      if (error_text.size() > kErrorBytes) error_text.erase(0, error_text.size() - kErrorBytes);
    }
    if (!ending.stopped && !go_on()) {
      ending.stopped = true;
      deadline = Clock::now() + kPatience;
      (void)kill(pid, SIGINT);
    }
    if (ending.stopped && Clock::now() > deadline) {
      (void)kill(-pid, SIGKILL);
      // What the command itself had started may keep the pipes open.
      break;
    }
  }
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  ending.outcome = outcome_of(status, told, error_text);
  return ending;
}

}  // namespace ridgeline::study
