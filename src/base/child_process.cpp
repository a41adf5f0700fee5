#include "base/child_process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/error.h"

namespace ridgeline {
namespace {

// The child's end first.
struct Ends {
  int child = -1, ours = -1;
};

// Words as exec takes them. REQUIRES: the words stay where they are.
std::vector<char*> pointers_to(std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (std::string& word : words) pointers.push_back(word.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> environment_with(const std::string& name, int descriptor) {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) all.emplace_back(*each);
  if (!name.empty()) all.push_back(fmt::format("{}={}", name, descriptor));
  return all;
}

bool make_ends(Ends& ends, bool towards_child) {
  int made[2];
  const int result = towards_child ? socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, made)
                                   : pipe2(made, O_CLOEXEC);
  if (result == 0) ends = {made[1], made[0]};
  return result == 0;
}

struct Start {
  char** argv;
  char** environment;
  pid_t dies_with;  // 0: it lives on
  int failed;       // tells why the program could not be started
  std::array<int, 4> streams;
};

// In the child, between vfork and exec, with the parent's memory: only what is safe there.
[[noreturn]] void become(const Start& start) {
  if (start.dies_with > 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != start.dies_with) _exit(126);
  }
  // Ctrl-C reaches the parent alone, which passes it on once. A shell that starts the parent in the
  // background makes it ignore SIGINT, and all its children with it: they must not.
  setpgid(0, 0);
  signal(SIGINT, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  for (int stream = 0; stream < 3; ++stream) {
    const int from = start.streams[static_cast<std::size_t>(stream)];
    if (from >= 0) dup2(from, stream);
  }
  if (start.streams[3] >= 0) fcntl(start.streams[3], F_SETFD, 0);
  execvpe(start.argv[0], start.argv, start.environment);
  const int problem = errno;
  (void)!write(start.failed, &problem, sizeof(problem));
  _exit(127);
}

// Unlike fork(), vfork() leaves the memory of a large process as it is: no page is copied or
// marked.
[[gnu::noinline]] pid_t run(const Start& start) {
  const pid_t pid = vfork();
  if (pid == 0) become(start);
  return pid;
}

}  // namespace

ChildProcess::ChildProcess(std::vector<std::string> words, const Options& options) {
  std::array<Ends, 4> pipes;
  Ends failed;  // closed by a start that succeeds
  const std::array<Stream, 4> wanted = {
      options.input, options.output, options.errors,
      options.side_channel.empty() ? Stream::inherited : Stream::piped};
  bool made = make_ends(failed, false);
  for (std::size_t i = 0; i < pipes.size() && made; ++i) {
    if (wanted[i] == Stream::piped) made = make_ends(pipes[i], i == input);
    if (wanted[i] == Stream::nothing) {
      pipes[i].child = open("/dev/null", O_RDWR | O_CLOEXEC);
      made = pipes[i].child >= 0;
    }
  }
  int problem = made ? 0 : errno;
  if (made) {
    std::vector<std::string> variables = environment_with(options.side_channel, pipes[side].child);
    std::vector<char*> argv = pointers_to(words), environment = pointers_to(variables);
    pid_ = run({argv.data(),
                environment.data(),
                options.dies_with_owner ? getpid() : 0,
                failed.child,
                {pipes[0].child, pipes[1].child, pipes[2].child, pipes[3].child}});
    if (pid_ < 0) problem = errno;
  }
  for (Ends& ends : pipes) {
    if (ends.child >= 0) ::close(ends.child);
  }
  if (failed.child >= 0) ::close(failed.child);
  if (pid_ > 0 && read(failed.ours, &problem, sizeof(problem)) != sizeof(problem)) problem = 0;
  if (failed.ours >= 0) ::close(failed.ours);
  for (std::size_t i = 0; i < pipes.size(); ++i) ends_[i] = pipes[i].ours;
  if (problem == 0) return;
  if (pid_ > 0) (void)wait();
  for (const Pipe pipe : {input, output, errors, side}) close(pipe);
  fail("{} cannot be started: {}", words[0], std::strerror(problem));
}

ChildProcess::~ChildProcess() {
  if (running()) (void)end();
  for (const Pipe pipe : {input, output, errors, side}) close(pipe);
}

void ChildProcess::close(Pipe pipe) {
  if (ends_[pipe] >= 0) ::close(ends_[pipe]);
  ends_[pipe] = -1;
}

void ChildProcess::read_some(Pipe pipe, std::string& text) {
  char buffer[65536];
  const ssize_t count = read(ends_[pipe], buffer, sizeof(buffer));
  if (count > 0) {
    text.append(buffer, static_cast<std::size_t>(count));
  } else if (count == 0 || (errno != EINTR && errno != EAGAIN)) {
    close(pipe);
  }
}

void ChildProcess::interrupt() const { (void)kill(pid_, SIGINT); }

bool ChildProcess::ends_within(double seconds) const {
  const auto deadline = Clock::now() + std::chrono::duration<double>(seconds);
  for (;;) {
    siginfo_t info = {};
    // Left unreaped: the group's number stays ours until wait().
    if (waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) != 0)
      return true;
    if (info.si_pid != 0) return true;
    if (Clock::now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

int ChildProcess::wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  return status;
}

int ChildProcess::end() {
  (void)kill(-pid_, SIGKILL);
  return wait();
}

std::string ending_text(int status) {
  if (WIFEXITED(status)) {
    return WEXITSTATUS(status) == 0 ? "" : fmt::format("exit code {}", WEXITSTATUS(status));
  }
  const char* name = sigabbrev_np(WTERMSIG(status));
  return fmt::format("killed by signal {} (SIG{})", WTERMSIG(status), name == nullptr ? "?" : name);
}

}  // namespace ridgeline
