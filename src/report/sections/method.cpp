// How it was measured, with the counts and settings of the runs at hand.

#include <algorithm>
#include <map>
#include <set>

#include "analysis/compare/verdict.h"
#include "analysis/stats/bootstrap.h"
#include "base/error.h"
#include "base/text.h"
#include "report/analysis/prose.h"
#include "report/sections/sections.h"

namespace ridgeline::report {
namespace {

// Values of a number over the runs that have it.
struct Spread {
  std::vector<double> values;

  Spread(const Runs& runs, const std::string& name) {
    for (const RunView* run : runs) {
      if (const auto value = number_of(*run, name)) values.push_back(*value);
    }
  }
  [[nodiscard]] bool empty() const { return values.empty(); }
  [[nodiscard]] double least() const { return *std::ranges::min_element(values); }
  [[nodiscard]] double most() const { return *std::ranges::max_element(values); }
  // "19", "19 to 120"
  [[nodiscard]] std::string text() const {
    return least() == most() ? plain_text(least())
                             : fmt::format("{} to {}", plain_text(least()), plain_text(most()));
  }
};

struct Words {
  std::map<std::string, std::size_t> counts;

  Words(const Runs& runs, const std::string& name) {
    for (const RunView* run : runs) {
      const auto found = run->run.notes.find(name);
      if (found != run->run.notes.end()) ++counts[found->second];
    }
  }
  // "'precise enough' for 6, 'time is up' for 4"
  [[nodiscard]] std::string text() const {
    std::vector<std::string> parts;
    for (const auto& [word, count] : counts)
      parts.push_back(fmt::format("'{}' for {}", word, count));
    return list_text(parts);
  }
};

Sentence iterations_sentence(const Runs& runs) {
  std::int64_t iterations = 0;
  std::size_t sampled = 0;
  for (const RunView* run : runs) {
    if (run->run.command == "train" || !run->seconds) continue;
    iterations += run->seconds->samples;
    ++sampled;
  }
  if (sampled == 0) return std::nullopt;
  return Prose().say(fmt::format(
      "{} iterations in {} are behind the times of this report; none was dropped. The clock "
      "starts on an idle device and stops when the device has been waited for.",
      count_text(iterations), count_words(sampled, "run")));
}

Sentence queued_sentence(const Runs& runs) {
  Runs queued;
  for (const RunView* run : runs) {
    if (run->run.numbers.contains("queued_seconds")) queued.push_back(run);
  }
  if (queued.empty()) return std::nullopt;
  return Prose()
      .say("Samples a second of ")
      .say(count_words(queued.size(), "run"), ids_of(queued))
      .say(
          " on graphics processors are those of iterations that follow each other in the device's "
          "queue, as in training; ratios and iteration times are of iterations that are waited "
          "for.");
}

Sentence warmup_sentence(const Runs& runs) {
  const Spread warmup(runs, "warmup_iterations");
  if (warmup.empty()) return std::nullopt;
  Prose text;
  text.say(fmt::format(
      "Before measuring came a warm-up of {} iterations; set-up, choosing of kernels and the "
      "first iteration are told apart and are no samples.",
      warmup.text()));
  const Words steadiness(runs, "steadiness"), stopping(runs, "stopping");
  Runs unsteady;
  for (const RunView* run : runs) {
    const auto found = run->run.notes.find("steadiness");
    if (found != run->run.notes.end() && found->second != "steady") unsteady.push_back(run);
  }
  if (!unsteady.empty()) {
    text.say(" It did not become steady in ");
    text.say(count_words(unsteady.size(), "run"), ids_of(unsteady));
    text.say(".");
  }
  if (!stopping.counts.empty()) {
    text.say(fmt::format(" Measuring ended with {} of the runs.", stopping.text()));
  }
  return text;
}

Sentence turns_sentence(const Runs& runs) {
  std::map<std::string, std::size_t> calls;
  for (const RunView* run : runs) {
    if (!run->run.group.empty() && run->run.command != "train") ++calls[run->run.group];
  }
  std::size_t together = 0, shared = 0;
  for (const auto& [call, count] : calls) {
    if (count < 2) continue;
    together += count;
    ++shared;
  }
  if (shared == 0) return std::nullopt;
  return Prose().say(fmt::format(
      "In {}, {} took turns of a few iterations in random order (interleaved blocks), so that a "
      "machine that slows down for a while meets all of them.",
      count_words(shared, "call"), count_words(together, "run")));
}

Sentence interval_sentence() {
  return Prose().say(fmt::format(
      "Times are medians. Intervals in brackets hold the true value with 95% confidence, by a "
      "bootstrap of {} replicates over blocks or, where samples are few, by their ranks; and with "
      "99% where two runs are compared. Faster and slower mean that the interval lies on one side "
      "of 1 and that the ratio is beyond {}; where neither is shown the answer is undecided. "
      "Samples too few for an interval decide only where every one of one run takes less than half "
      "of the time of any of the other.",
      count_text(kReplicates), limit_text(VerdictOptions{}.margin)));
}

Sentence ceilings_sentence(const Data& data) {
  std::size_t count = 0;
  std::set<std::string> days;
  for (const Machine& machine : data.machines()) {
    count += machine.ceilings.size();
    for (const Ceiling& ceiling : machine.ceilings) {
      if (ceiling.measured.size() >= 10) days.insert(ceiling.measured.substr(0, 10));
    }
  }
  if (count == 0) return std::nullopt;
  return Prose().say(fmt::format(
      "Roofs are measured, not taken from data sheets: {}{}. Of each the best repeat "
      "counts. FLOPs and bytes are those of the plan's steps; efficiency is the least time that "
      "the roofs allow over the measured one, and a point more than {} above its roof is reported "
      "as an error of the tool.",
      count_words(count, "ceiling"),
      days.empty() ? "" : " of " + list_text({days.begin(), days.end()}),
      limit_text(kRoofTolerance)));
}

Sentence overhead_sentence(const Runs& runs) {
  const Spread telemetry(runs, "telemetry_overhead_share"), rate(runs, "telemetry_rate_hz"),
      recording(runs, "recording_overhead_share"), profiling(runs, "profiling_overhead_share");
  std::vector<std::string> parts;
  if (!telemetry.empty() && !rate.empty()) {
    parts.push_back(fmt::format("reading sensors {} times a second took at most {} of one core",
                                rate.text(), percent_text(telemetry.most())));
  }
  if (!recording.empty()) {
    parts.push_back(fmt::format("writing to the store, between turns, at most {} of a run's time",
                                percent_text(recording.most())));
  }
  if (!profiling.empty()) {
    parts.push_back(fmt::format(
        "watching an iteration for a profile at most {} of the time of one that was not watched",
        percent_text(profiling.most())));
  }
  if (parts.empty()) return std::nullopt;
  return Prose().say("What measuring itself cost: " + list_text(parts) + ".");
}

Sentence units_sentence() {
  return Prose().say(
      "One multiply-add is two FLOPs; training FLOPs are counted op by op, forward and backward. "
      "kB, MB and GB are powers of ten, KiB, MiB and GiB powers of two; intensity is FLOP/byte. "
      "What was not measured is n/a, never 0. Runs are compared only when they did the same work: "
      "all that the store keeps of it is equal, from the network and its options to data, batch, "
      "precision, optimizer, learning rate and epochs.");
}

}  // namespace

Section method_section(const SectionInput& input) {
  Section section = titled("method", "Method");
  const Runs runs = shown_runs(input);
  if (runs.empty()) return section;
  const auto add = [&](const std::vector<Sentence>& sentences) {
    if (const auto text = paragraph_of(sentences)) section.blocks.emplace_back(*text);
  };
  add({iterations_sentence(runs), queued_sentence(runs)});
  add({warmup_sentence(runs), turns_sentence(runs)});
  add({interval_sentence()});
  add({ceilings_sentence(input.data)});
  add({overhead_sentence(runs)});
  add({units_sentence()});
  return section;
}

}  // namespace ridgeline::report
