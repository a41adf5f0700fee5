#include "peers/line_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <deque>

#include "base/clock.h"
#include "base/error.h"
#include "base/processor_time.h"

namespace ridgeline {
namespace {

constexpr std::size_t kKeptErrors = 8192;  // bytes of standard error
constexpr std::size_t kShownLines = 4;

Clock::time_point after(double seconds) {
  return Clock::now() +
         std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

std::string shortened(std::string text) {
  constexpr std::size_t kLongest = 300;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

}  // namespace

LineProcess::LineProcess(const std::vector<std::string>& command)
    : child_(command, {.input = ChildProcess::Stream::piped,
                       .output = ChildProcess::Stream::piped,
                       .errors = ChildProcess::Stream::piped}) {
  for (const auto pipe : {ChildProcess::input, ChildProcess::output, ChildProcess::errors}) {
    fcntl(child_.end_of(pipe), F_SETFL, O_NONBLOCK);
  }
}

void LineProcess::read_errors() {
  for (std::size_t before = 1; before != error_text_.size();) {
    before = error_text_.size();
    if (child_.end_of(ChildProcess::errors) < 0) return;
    child_.read_some(ChildProcess::errors, error_text_);
    if (error_text_.size() > kKeptErrors) {
      error_text_.erase(0, error_text_.size() - kKeptErrors);
    }
  }
}

bool LineProcess::wait_for_output(Time deadline) {
  const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
  if (left.count() <= 0) return false;
  std::array<pollfd, 2> files = {{{child_.end_of(ChildProcess::output), POLLIN, 0},
                                  {child_.end_of(ChildProcess::errors), POLLIN, 0}}};
  // Waits again where a signal came between.
  if (poll(files.data(), files.size(), static_cast<int>(left.count()) + 1) <= 0) return true;
  read_errors();
  child_.read_some(ChildProcess::output, answers_);
  return true;
}

void LineProcess::send(const std::string& line, Time deadline) {
  const std::string text = line + '\n';
  const int to = child_.end_of(ChildProcess::input);
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = ::send(to, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
    if (count > 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN && Clock::now() < deadline) {
      pollfd file = {to, POLLOUT, 0};
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
    if (child_.end_of(ChildProcess::output) < 0) {
      const std::string how = reap();
      fail("{}{}", how, last_words());
    }
    if (!wait_for_output(deadline)) {
      (void)reap();
      fail("no answer within {:g} s, so it was stopped{}", seconds, last_words());
    }
  }
}

std::optional<double> LineProcess::processor_seconds() const {
  return running() ? std::optional(processor_seconds_of(child_.pid())) : std::nullopt;
}

void LineProcess::end(double seconds) {
  if (!running()) return;
  child_.close(ChildProcess::input);
  const Time deadline = after(seconds);
  // A full pipe would keep it from ending.
  while (Clock::now() < deadline && !child_.ends_within(0.005)) read_errors();
  (void)reap();
}

std::string LineProcess::reap() {
  if (!running()) return "it has ended";
  // One that closed its output is about to end: its own way of ending tells more than ours.
  const bool closed = child_.end_of(ChildProcess::output) < 0;
  const bool by_itself = closed && child_.ends_within(1.0);
  const std::string how = ending_text(child_.end());
  read_errors();
  return by_itself ? fmt::format("it ended: {}", how.empty() ? "exit code 0" : how)
                   : "it was ended";
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
  std::string text = "; its last output:";
  for (const std::string& line : lines) text += "\n  " + line;
  return text;
}

}  // namespace ridgeline
