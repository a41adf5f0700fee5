#pragma once

// What the reader of a number must know of the run behind it. Tables mark their cells with these,
// and the report lists them with their evidence: one set of rules serves both.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/data.h"

namespace ridgeline::report {

// Names of what is found here; those that a run was stored with keep their own.
inline constexpr std::string_view kSubstituted = "substituted data";
inline constexpr std::string_view kAtChance = "accuracy at chance";
inline constexpr std::string_view kNotANumber = "loss is not a number";
inline constexpr std::string_view kFrozen = "frozen parameters";
inline constexpr std::string_view kLoaderBound = "loader-bound";
inline constexpr std::string_view kAboveRoof = "above the roof";
inline constexpr std::string_view kFewSamples = "too few samples";

// Fewer measured iterations than this are flagged.
inline constexpr std::int64_t kEnoughSamples = 10;
// How much of its time a run may wait for data before the loader sets its speed.
inline constexpr double kLoaderShare = 0.10;

// Each name once, the gravest first, then in the order of this file. Of stored findings, warnings
// and errors; several of one name become one, which tells the first and how many there are.
[[nodiscard]] std::vector<Finding> flags_of(const Data& data, const RunView& run);

// Errors have the least, then warnings, then the rest.
[[nodiscard]] int gravity(const std::string& severity);

// How much of its time the run waited for data; nothing: not measured.
[[nodiscard]] std::optional<double> wait_share(const RunView& run);

// That accuracies of a training's test were made from; where that was not written down a small
// number, so that the interval of guessing is wide.
[[nodiscard]] double tested_samples(const RunView& run);

// Whether an accuracy of the run could come from guessing.
[[nodiscard]] bool at_chance(const RunView& run, double accuracy);

// What a flag means for the number, in one sentence that fits every run: a table's footnote. For
// names that are not known here the finding's own evidence.
[[nodiscard]] std::string footnote_of(const Finding& flag);

}  // namespace ridgeline::report
