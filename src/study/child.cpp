#include "study/child.h"

#include <poll.h>
#include <sys/wait.h>

#include <chrono>

#include "base/child_process.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/text.h"

namespace ridgeline::study {
namespace {

constexpr int kPollMilliseconds = 100;
constexpr std::size_t kErrorBytes = 16384;
// For a command that was asked to end: it finishes its iteration and writes its results.
constexpr std::chrono::seconds kPatience{20};

std::string last_line(std::string_view text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string_view::npos) return {};
  text = text.substr(0, end + 1);
  const std::size_t before = text.find_last_of("\r\n");
  return std::string(before == std::string_view::npos ? text : text.substr(before + 1));
}

std::string ending_text(int status, const std::string& errors) {
  std::string text = ridgeline::ending_text(status);
  if (text.empty()) text = "exit code 0";
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
  using Stream = ChildProcess::Stream;
  ChildProcess child(std::move(words), {.output = Stream::nothing,
                                        .errors = Stream::piped,
                                        .side_channel = std::string(kOutcomeVariable),
                                        .dies_with_owner = true});
  const auto end_of = [&](ChildProcess::Pipe pipe) { return child.end_of(pipe); };
  std::string told, error_text;
  ChildEnding ending;
  Clock::time_point deadline;
  while (end_of(ChildProcess::side) >= 0 || end_of(ChildProcess::errors) >= 0) {
    pollfd waiting[2] = {{end_of(ChildProcess::side), POLLIN, 0},
                         {end_of(ChildProcess::errors), POLLIN, 0}};
    if (poll(waiting, 2, kPollMilliseconds) > 0) {
      if (waiting[0].revents != 0) child.read_some(ChildProcess::side, told);
      if (waiting[1].revents != 0) child.read_some(ChildProcess::errors, error_text);
      if (error_text.size() > kErrorBytes) error_text.erase(0, error_text.size() - kErrorBytes);
    }
    if (!ending.stopped && !go_on()) {
      ending.stopped = true;
      deadline = Clock::now() + kPatience;
      child.interrupt();
    }
    // What the command itself had started may keep the pipes open.
    if (ending.stopped && Clock::now() > deadline) break;
  }
  const bool late = ending.stopped && Clock::now() > deadline;
  ending.outcome = outcome_of(late ? child.end() : child.wait(), told, error_text);
  return ending;
}

}  // namespace ridgeline::study
