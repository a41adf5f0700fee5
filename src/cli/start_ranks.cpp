#include "cli/start_ranks.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "base/child_process.h"
#include "base/error.h"
#include "cli/command_line.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "ranks/launch.h"
#include "train/checkpoint.h"

namespace ridgeline::cli {
namespace {

constexpr double kPace = 0.1;          // seconds between two looks at the job
constexpr double kRestartPause = 1.0;  // seconds
// Of mpirun where it reaches a host by ssh and that fails.
constexpr int kNotStarted = 255;

struct Ending {
  int code = 0;
  int signal = 0;  // that ended the wait; 0: the job ended by itself
};

Ending run_job(const std::vector<std::string>& words) {
  const InterruptGuard interrupt;
  ChildProcess job(words, {.input = ChildProcess::Stream::nothing,
                           .output = ChildProcess::Stream::inherited,
                           .errors = ChildProcess::Stream::inherited,
                           .dies_with_owner = true});
  int told = 0;
  while (!job.ends_within(kPace)) {
    if (interrupt.signal() != 0 && told == 0) {
      told = interrupt.signal();
      (void)kill(job.pid(), told);  // mpirun ends its ranks
    }
  }
  const int status = job.wait();
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), told};
}

}  // namespace

int start_ranks(const StartRanks& options) {
  std::vector<std::string> words = rank_launcher(options.count);
  if (options.restarts < 0) bad_input("--restarts {}: must not be negative", options.restarts);
  if (options.restarts > 0 && options.checkpoint.empty()) {
    bad_input("--restarts needs --checkpoint DIR");
  }
  std::vector<std::string> own = command_words();
  own[0] = own_program();
  words.insert(words.end(), own.begin(), own.end());
  for (std::int64_t left = options.restarts;; --left) {
    const Ending ending = run_job(words);
    if (ending.signal != 0) return 128 + ending.signal;
    if (ending.code == 0 || ending.code == 2) return ending.code;
    if (ending.code == kNotStarted) {
      bad_input("--ranks: mpirun could not start the ranks; is every host of its list reachable?");
    }
    if (left == 0) {
      message(fmt::format("ridgeline: the ranks have failed (exit code {})\n", ending.code));
      return 1;
    }
    message(
        fmt::format("ridgeline: the ranks have failed (exit code {}); starting again, {} more "
                    "times at most\n",
                    ending.code, left - 1));
    const bool resumes = std::find(words.begin(), words.end(), "--resume") != words.end();
    if (!resumes && has_checkpoint(options.checkpoint)) words.emplace_back("--resume");
    (void)usleep(static_cast<useconds_t>(kRestartPause * 1e6));
  }
}

}  // namespace ridgeline::cli
