#include "cli/start_ranks.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <vector>

#include "base/child_process.h"
#include "base/error.h"
#include "cli/interrupt.h"
#include "cli/output.h"
#include "ranks/ranks.h"
#include "train/checkpoint.h"

namespace ridgeline::cli {
namespace {

constexpr double kPace = 0.1;          // seconds between two looks at the job
constexpr double kRestartPause = 1.0;  // seconds

// The words that this process was called with.
std::vector<std::string> own_words() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> words;
  for (std::string word; std::getline(file, word, '\0');) words.push_back(word);
  ensure(!words.empty(), "/proc/self/cmdline cannot be read");
  std::error_code error;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", error);
  if (!error) words[0] = program.string();
  return words;
}

bool in_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::string folders = path != nullptr ? path : "";
  for (std::size_t begin = 0; begin <= folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    const std::string file = folders.substr(begin, end - begin) + '/' + program;
    if (access(file.c_str(), X_OK) == 0) return true;
    begin = end + 1;
  }
  return false;
}

// Ranks share this machine's processors as threads do: none is tied to one of them.
std::vector<std::string> launcher(int count) {
  std::vector<std::string> words = {"mpirun", "-n", std::to_string(count)};
  if (joined_by_open_mpi()) {
    for (const char* word : {"--oversubscribe", "--bind-to", "none", "-q"})
      words.emplace_back(word);
    if (geteuid() == 0) words.emplace_back("--allow-run-as-root");
  }
  return words;
}

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
  if (const std::string reason = ranks_unavailable(); !reason.empty()) bad_input("{}", reason);
  if (!in_path("mpirun")) bad_input("--ranks: mpirun is not installed (Debian: openmpi-bin)");
  if (options.restarts < 0) bad_input("--restarts {}: must not be negative", options.restarts);
  if (options.restarts > 0 && options.checkpoint.empty()) {
    bad_input("--restarts needs --checkpoint DIR");
  }
  std::vector<std::string> words = launcher(options.count);
  const std::vector<std::string> own = own_words();
  words.insert(words.end(), own.begin(), own.end());
  for (std::int64_t left = options.restarts;; --left) {
    const Ending ending = run_job(words);
    if (ending.signal != 0) return 128 + ending.signal;
    if (ending.code == 0 || ending.code == 2) return ending.code;
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
