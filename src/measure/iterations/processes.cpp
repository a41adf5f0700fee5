#include "measure/iterations/processes.h"

#include <poll.h>

#include <set>

#include "base/child_process.h"
#include "base/error.h"
#include "measure/iterations/events.h"

namespace ridgeline {
namespace {

constexpr int kPollMilliseconds = 100;

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
    ChildProcess child(config.command(number), {.dies_with_owner = true});
    const double shift = control.now() - start;
    std::string text;
    while (child.end_of(ChildProcess::output) >= 0) {
      pollfd waiting{child.end_of(ChildProcess::output), POLLIN, 0};
      if (poll(&waiting, 1, kPollMilliseconds) > 0) child.read_some(ChildProcess::output, text);
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
    const std::string trouble = ending_text(child.wait());
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
