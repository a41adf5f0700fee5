#pragma once

// How a call of a command ended, as its process tells the study whose item it is.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/records.h"

namespace ridgeline {

// A configuration of a call of `bench` that was not measured, and why. Names are as the call had
// them.
struct CandidateOutcome {
  std::string model, batch, backend, device;
  std::string reason;
};

struct Outcome {
  ItemStatus status = ItemStatus::done;
  std::string reason = {};  // why it was left out or failed; empty: `failed` tells, or nothing does
  std::vector<CandidateOutcome> left_out = {}, failed = {};
};

// One line.
[[nodiscard]] std::string outcome_json(const Outcome& outcome);
// Nothing for text that is no outcome.
[[nodiscard]] std::optional<Outcome> parse_outcome(std::string_view json);

// Names the file descriptor that the study reads.
inline constexpr std::string_view kOutcomeVariable = "RIDGELINE_OUTCOME";

// At the start of the program, before it starts any process: none of those inherits the descriptor
// or the variable.
void open_outcome();
// For commands: a candidate that was left out or failed while others went on.
void note_left_out(CandidateOutcome candidate);
void note_failed(CandidateOutcome candidate);
// At the end of the program, with the candidates that were noted. Does nothing where no study
// listens.
void tell_outcome(ItemStatus status, const std::string& reason = {});

}  // namespace ridgeline
