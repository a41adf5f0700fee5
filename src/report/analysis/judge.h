#pragma once

// Hypotheses judged by the data.

#include "report/analysis/ratios.h"
#include "report/document.h"

namespace ridgeline::report {

// Confirmed, not confirmed or undecided, from intervals and never from medians alone, with the
// numbers that it rests on. What was not measured is undecided, and the answer says what is missing
// and why. Throws a failure for a test that study::hypothesis_tests() does not name.
[[nodiscard]] Judgement judge(const Data& data, const StudyView& study,
                              const study::Hypothesis& hypothesis);

// Whether a run fits "device=cuda:0" or "backend=native,precision=bf16". Names are those of
// RunView::word, of filters (run_filter.h) and "machine". A device may be named without its number
// ("cuda"); "|" stands between alternatives. Everything fits an empty condition.
[[nodiscard]] bool fits(const Data& data, const RunView& run, const std::string& condition);

}  // namespace ridgeline::report
