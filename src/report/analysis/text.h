#pragma once

// What the numbers of some runs say, in sentences. Each sentence is made from the data; where these
// do not support it, it is not there.

#include <vector>

#include "report/analysis/prose.h"
#include "report/analysis/ratios.h"

namespace ridgeline::report {

struct TextInput {
  const Data& data;
  Runs runs;  // the newest of each place and work
  // The same without profiles, whose iterations are few and disturbed by being watched.
  Runs timed;
  Wording wording;
};
[[nodiscard]] TextInput text_input(const Data& data, const Runs& runs);

// "resnet18 (batch 64) with native on desk"
[[nodiscard]] std::string run_words(const TextInput& input, const RunView& run);

// The same work by two sides, of each its fastest executor.
struct Contest {
  std::string where;          // "On desk, "; empty: the sides are places
  std::string of, than;       // "server cuda:0", "desk with 2 threads"
  std::vector<Ratio> ratios;  // how many times as fast `of` is, one for each kind of work
};
// Each two devices, the faster one in front.
[[nodiscard]] std::vector<Contest> device_contests(const TextInput& input);
// On each device Ridgeline against the peers.
[[nodiscard]] std::vector<Contest> peer_contests(const TextInput& input);
// How it ended, by the verdicts on its pairs and with their doubts.
[[nodiscard]] Sentence contest_sentence(const TextInput& input, const Contest& contest);
// The same for a headline: the range of the factors and how many pairs there are of each verdict.
[[nodiscard]] Sentence brief_contest_sentence(const TextInput& input, const Contest& contest);
// Those with this verdict, the smallest speed-up first.
[[nodiscard]] std::vector<Ratio> with(const std::vector<Ratio>& ratios, Verdict verdict);

// What the same work takes on other machines, and why.
[[nodiscard]] std::vector<Sentence> environment_impact(const TextInput& input);
// Executors beside each other on one machine.
[[nodiscard]] std::vector<Sentence> executor_differences(const TextInput& input);
// Networks beside each other at one place.
[[nodiscard]] std::vector<Sentence> model_differences(const TextInput& input);
// The batches of one network at one place, smallest first; the longest series in front.
[[nodiscard]] std::vector<Runs> batch_sweeps(const TextInput& input);
// What larger batches bring and cost, the longest series first.
[[nodiscard]] std::vector<Sentence> batch_effects(const TextInput& input);
// What limits the runs: memory, computing, launches, data.
[[nodiscard]] std::vector<Sentence> bottlenecks(const TextInput& input);
// What trainings reached.
[[nodiscard]] std::vector<Sentence> learning(const TextInput& input);

// All of it: for each of the above that has something to say its first sentence, and a paragraph
// with its name in front.
struct Told {
  Sentence first;
  Paragraph paragraph;
};
[[nodiscard]] std::vector<Told> analysis_of(const Data& data, const Runs& runs);

}  // namespace ridgeline::report
