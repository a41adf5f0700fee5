#include "lab/peers/line_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <deque>
#include <thread>

#include "base/error.h"
#include "base/processor_time.h"

extern char** environ;

namespace ridgeline {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kKeptErrors = 8192;  // bytes of standard error
constexpr std::size_t kShownLines = 4;

Clock::time_point after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

void close_if_open(int& file) {
  if (file >= 0) close(file);
  file = -1;
}

// The arguments of posix_spawn, given back at the end.
struct SpawnSettings {
  SpawnSettings() {
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
  }
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions);
    posix_spawnattr_destroy(&attributes);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
};

std::string shortened(std::string text) {
  constexpr std::size_t kLongest = 300;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

}  // namespace

LineProcess::LineProcess(const std::vector<std::string>& command) {
  // A socket towards the child, because sending into one can be told not to raise SIGPIPE.
  std::array<int, 2> in = {-1, -1}, out = {-1, -1}, err = {-1, -1};
  const bool made = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, in.data()) == 0 &&
                    pipe2(out.data(), O_CLOEXEC) == 0 && pipe2(err.data(), O_CLOEXEC) == 0;
  int problem = made ? 0 : errno;
  if (made) {
    SpawnSettings settings;
    posix_spawn_file_actions_adddup2(&settings.actions, in[1], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&settings.actions, out[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&settings.actions, err[1], STDERR_FILENO);
    sigset_t none;
    sigemptyset(&none);
    posix_spawnattr_setsigmask(&settings.attributes, &none);
    posix_spawnattr_setpgroup(&settings.attributes, 0);
    posix_spawnattr_setflags(&settings.attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
    std::vector<std::string> words = command;
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    problem = posix_spawnp(&pid_, arguments[0], &settings.actions, &settings.attributes,
                           arguments.data(), environ);
  }
  for (int* file : {&in[1], &out[1], &err[1]}) close_if_open(*file);
  to_ = in[0];
  from_ = out[0];
  errors_ = err[0];
  if (problem != 0) {
    pid_ = -1;
    for (int* file : {&to_, &from_, &errors_}) close_if_open(*file);
    fail("{} cannot be started: {}", command[0], std::strerror(problem));
  }
  for (const int file : {to_, from_, errors_}) fcntl(file, F_SETFL, O_NONBLOCK);
}

LineProcess::~LineProcess() {
  (void)reap();
  for (int* file : {&to_, &from_, &errors_}) close_if_open(*file);
}

void LineProcess::read_errors() {
  std::array<char, 4096> buffer;
  while (errors_ >= 0) {
    const ssize_t count = read(errors_, buffer.data(), buffer.size());
    if (count < 0) return;
    if (count == 0) {
      close_if_open(errors_);
      return;
    }
    error_text_.append(buffer.data(), static_cast<std::size_t>(count));
    if (error_text_.size() > kKeptErrors) {
      error_text_.erase(0, error_text_.size() - kKeptErrors);
    }
  }
}

bool LineProcess::wait_for_output(Time deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  if (left.count() <= 0) return false;
  std::array<pollfd, 2> files = {{{from_, POLLIN, 0}, {errors_, POLLIN, 0}}};
  // Waits again where a signal came between.
  if (poll(files.data(), files.size(), static_cast<int>(left.count()) + 1) <= 0) return true;
  read_errors();
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t count = read(from_, buffer.data(), buffer.size());
    if (count > 0) {
      answers_.append(buffer.data(), static_cast<std::size_t>(count));
      continue;
    }
    closed_ = count == 0;
    return true;
  }
}

void LineProcess::send(const std::string& line, Time deadline) {
  const std::string text = line + '\n';
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(to_, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count > 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN && Clock::now() < deadline) {
      pollfd file = {to_, POLLOUT, 0};
      poll(&file, 1, 100);
    } else if (errno != EINTR) {
      return;  // it is gone or stuck: waiting for its answer tells
    }
  }
}

std::string LineProcess::ask(const std::string& line, double seconds) {
  ensure(running(), "the process has ended");
  const Time deadline = after(seconds);
  send(line, deadline);
  for (;;) {
    const std::size_t end = answers_.find('\n');
    if (end != std::string::npos) {
      std::string answer = answers_.substr(0, end);
      answers_.erase(0, end + 1);
      return answer;
    }
    if (closed_) {
      const std::string how = reap();
      fail("{}{}", how, last_words());
    }
    if (!wait_for_output(deadline)) {
      (void)reap();
      fail("no answer within {:g} s, so it was ended{}", seconds, last_words());
    }
  }
}

std::optional<double> LineProcess::processor_seconds() const {
  return running() ? std::optional(processor_seconds_of(pid_)) : std::nullopt;
}

void LineProcess::end(double seconds) {
  if (!running()) return;
  close_if_open(to_);
  const Time deadline = after(seconds);
  while (Clock::now() < deadline) {
    siginfo_t info = {};
    // Left unreaped: the group's number stays ours until reap().
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) break;
    if (info.si_pid != 0) break;
    read_errors();  // a full pipe would keep it from ending
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  (void)reap();
}

std::string LineProcess::reap() {
  if (!running()) return "it has ended";
  // One that closed its output is about to end: its own way of ending tells more than ours.
  siginfo_t info = {};
  for (int i = 0; closed_ && i < 200 && info.si_pid == 0; ++i) {
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0) break;
    if (info.si_pid == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  kill(-pid_, SIGKILL);
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  read_errors();
  if (info.si_pid == 0) return "it was ended";
  if (WIFEXITED(status)) return fmt::format("it ended with exit code {}", WEXITSTATUS(status));
  const char* name = sigabbrev_np(WTERMSIG(status));
  return fmt::format("it was killed by signal {} (SIG{})", WTERMSIG(status),
                     name == nullptr ? "?" : name);
}

std::string LineProcess::last_words() {
  read_errors();
  std::deque<std::string> lines;
  std::size_t begin = 0;
  while (begin < error_text_.size()) {
    const std::size_t end = std::min(error_text_.find('\n', begin), error_text_.size());
    const std::string line = error_text_.substr(begin, end - begin);
    if (line.find_first_not_of(" \t\r") != std::string::npos) lines.push_back(shortened(line));
    if (lines.size() > kShownLines) lines.pop_front();
    begin = end + 1;
  }
  if (lines.empty()) return {};
  std::string text = "; its last words:";
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

}  // namespace ridgeline
