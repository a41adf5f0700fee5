#pragma once

// What the numbers of some runs say, in sentences. Each sentence is made from the data; where these
// do not support it, it is not there.

#include <vector>

#include "report/analysis/prose.h"
#include "report/analysis/ratios.h"

namespace ridgeline::report {

struct TextInput {
  const Data& data;
  Ratios& ratios;
  Runs runs;  // the newest of each place and work
  // The same without profiles, whose iterations are few and disturbed by being watched.
  Runs timed;
  Wording wording;
};
[[nodiscard]] TextInput text_input(const Data& data, Ratios& ratios, const Runs& runs);

// "resnet18 (batch 64) with native on desk"
[[nodiscard]] std::string run_words(const TextInput& input, const RunView& run);

// What the same work takes on other machines, and why.
[[nodiscard]] std::vector<Sentence> environment_impact(const TextInput& input);
// Executors beside each other on one machine.
[[nodiscard]] std::vector<Sentence> executor_differences(const TextInput& input);
// Networks beside each other at one place.
[[nodiscard]] std::vector<Sentence> model_differences(const TextInput& input);
// What larger batches bring and cost.
[[nodiscard]] std::vector<Sentence> batch_effects(const TextInput& input);
// What limits the runs: memory, computing, launches, data.
[[nodiscard]] std::vector<Sentence> bottlenecks(const TextInput& input);
// What trainings reached.
[[nodiscard]] std::vector<Sentence> learning(const TextInput& input);

// All of it, a paragraph for each of the above that has something to say, with its name in front.
// `brief`: of each only the first sentence.
[[nodiscard]] std::vector<Paragraph> analysis_of(const Data& data, Ratios& ratios, const Runs& runs,
                                                 bool brief = false);

}  // namespace ridgeline::report
