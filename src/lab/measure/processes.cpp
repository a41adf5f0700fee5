#include "lab/measure/processes.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <set>

#include "base/error.h"
#include "lab/measure/events.h"

namespace ridgeline {
namespace {

constexpr int kPollMilliseconds = 100;

// A process of ours whose standard output we read.
class ChildProcess {
 public:
  explicit ChildProcess(std::vector<std::string> words) {
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) fail("no pipe for a process: {}", std::strerror(errno));
    pid_ = fork();
    if (pid_ == 0) {
      dup2(ends[1], STDOUT_FILENO);
      execv(argv[0], argv.data());
      _exit(127);
    }
    const int error = errno;
    close(ends[1]);
    output_ = ends[0];
    if (pid_ < 0) {
      close(output_);
      fail("no process could be started: {}", std::strerror(error));
    }
  }
  ~ChildProcess() {
    close(output_);
    if (!ended_) {
      (void)kill(pid_, SIGKILL);
      (void)wait();
    }
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  void interrupt() const { (void)kill(pid_, SIGINT); }

  // Appends what there is within a short time; false at the end of the output.
  [[nodiscard]] bool read_some(std::string& text) const {
    pollfd waiting{output_, POLLIN, 0};
    if (poll(&waiting, 1, kPollMilliseconds) <= 0) return true;
    char buffer[65536];
    const ssize_t count = read(output_, buffer, sizeof(buffer));
    if (count < 0) return errno == EINTR;
    text.append(buffer, static_cast<std::size_t>(count));
    return count > 0;
  }

  // How it ended, in words; empty: as it should.
  [[nodiscard]] std::string wait() {
    int status = 0;
    while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
    }
    ended_ = true;
    if (WIFSIGNALED(status)) return fmt::format("ended by signal {}", WTERMSIG(status));
    if (WEXITSTATUS(status) != 0) return fmt::format("exit code {}", WEXITSTATUS(status));
    return {};
  }

 private:
  pid_t pid_ = -1;
  int output_ = -1;
  bool ended_ = false;
};

// Remembers who has ended.
class EndWatch final : public MeasureSink {
 public:
  explicit EndWatch(MeasureSink& next) : next_(next) {}
  void begun(std::size_t candidate) override { next_.begun(candidate); }
  void prepared(std::size_t candidate, const Preparation& preparation) override {
    next_.prepared(candidate, preparation);
  }
  void measured(std::size_t candidate, std::span<const Sample> samples) override {
    next_.measured(candidate, samples);
  }
  void readings(std::size_t candidate, std::span<const Reading> readings) override {
    next_.readings(candidate, readings);
  }
  void ended(std::size_t candidate, const Ending& ending) override {
    ended_.insert(candidate);
    next_.ended(candidate, ending);
  }
  [[nodiscard]] bool has_ended(std::size_t candidate) const { return ended_.contains(candidate); }

 private:
  MeasureSink& next_;
  std::set<std::size_t> ended_;
};

}  // namespace

bool measure_in_processes(const ProcessesConfig& config, const MeasureControl& control,
                          MeasureSink& sink) {
  const double start = control.now();
  sink.group_begun(start);
  bool go_on = true;
  for (std::int64_t number = 0; number < config.processes && go_on; ++number) {
    EndWatch watch(sink);
    ChildProcess child(config.command(number));
    const double shift = control.now() - start;
    std::string text, trouble;
    for (bool more = true; more;) {
      more = child.read_some(text);
      std::size_t begin = 0;
      for (std::size_t end = text.find('\n'); end != std::string::npos;
           end = text.find('\n', begin)) {
        replay_event(std::string_view(text).substr(begin, end - begin), config.candidates, shift,
                     watch);
        begin = end + 1;
      }
      text.erase(0, begin);
      if (!go_on) continue;
      go_on = control.go_on({.done = number, .total = config.processes, .unit = "process"});
      if (!go_on) child.interrupt();
    }
    trouble = child.wait();
    for (std::size_t candidate = 0; candidate < config.candidates; ++candidate) {
      if (watch.has_ended(candidate)) continue;
      Ending ending;
      ending.status = go_on ? RunStatus::failed : RunStatus::interrupted;
      ending.reason = go_on ? StopReason::none : StopReason::interrupted;
      if (go_on) {
        ending.error = fmt::format("the measuring process {} ended early{}{}", number,
                                   trouble.empty() ? "" : ": ", trouble);
      }
      sink.ended(candidate, ending);
    }
  }
  return go_on;
}

}  // namespace ridgeline
