#include "report/flags.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "train/metrics.h"

namespace ridgeline::report {
namespace {

constexpr double kAssumedTestSamples = 1000.0;

Finding flag(std::string_view name, const char* severity, std::string evidence) {
  return {std::string(name), severity, std::move(evidence)};
}

void find_substitute(const RunView& run, std::vector<Finding>& flags) {
  if (!run.substitute.empty()) flags.push_back(flag(kSubstituted, "warning", run.substitute));
}

// The accuracy of guessing: the share of the most frequent class of the test samples, or of equal
// classes where that was not written down.
double chance_of(const RunView& run) {
  return run.number("chance_accuracy").value_or(1.0 / static_cast<double>(run.run.work.classes));
}

void find_chance(const RunView& run, std::vector<Finding>& flags) {
  const EpochRecord* last = last_tested(run);
  const std::int64_t classes = run.run.work.classes, tested = run.run.work.test_samples;
  if (last == nullptr || classes < 2) return;
  if (!at_chance(run, *last->test_accuracy)) return;
  flags.push_back(flag(
      kAtChance, "warning",
      fmt::format("test accuracy {:.2f}% after epoch {}; guessing among {} classes gives {:.2f}%{}",
                  100.0 * *last->test_accuracy, last->epoch, classes, 100.0 * chance_of(run),
                  tested > 0 ? fmt::format(" on {} samples", count_text(tested)) : "")));
}

void find_loss(const RunView& run, std::vector<Finding>& flags) {
  for (const EpochRecord& epoch : run.epochs) {
    if (std::isfinite(epoch.train_loss)) continue;
    flags.push_back(flag(kNotANumber, "error",
                         fmt::format("the loss of epoch {} is not a number", epoch.epoch)));
    return;
  }
}

// A network whose loss is the same to the last digit in every epoch learns nothing.
bool loss_stands_still(const RunView& run) {
  if (run.epochs.size() < 2) return false;
  const double first = run.epochs.front().train_loss;
  return std::isfinite(first) && std::ranges::all_of(run.epochs, [&](const EpochRecord& epoch) {
           return std::abs(epoch.train_loss - first) <= 1e-9 * std::abs(first);
         });
}

void find_frozen(const RunView& run, std::vector<Finding>& flags) {
  if (loss_stands_still(run)) {
    flags.push_back(flag(kFrozen, "warning",
                         fmt::format("the training loss is {:.6g} in all of {} epochs: "
                                     "the parameters do not change",
                                     run.epochs.front().train_loss, run.epochs.size())));
    return;
  }
  const NameList& frozen = run.run.work.freeze;
  if (frozen.empty()) return;
  flags.push_back(flag(kFrozen, "note",
                       fmt::format("not all parameters were trained ({} frozen): a step does less "
                                   "work than one of the whole network",
                                   joined(frozen, ", "))));
}

void find_loader(const RunView& run, std::vector<Finding>& flags) {
  const std::optional<double> share = wait_share(run);
  if (!share || *share < kLoaderShare) return;
  flags.push_back(
      flag(kLoaderBound, "warning",
           fmt::format("{:.0f}% of the time went into waiting for data", 100.0 * *share)));
}

void find_roof(const Data& data, const RunView& run, std::vector<Finding>& flags) {
  const std::optional<RooflinePoint> point = data.point(run);
  if (!point) return;
  for (const Finding& finding : above_roof({&*point, 1})) flags.push_back(finding);
}

void find_few(const RunView& run, std::vector<Finding>& flags) {
  if (!run.seconds) return;
  // The iterations of a training are counted in epochs of many.
  if (!run.epochs.empty()) {
    const auto counted = static_cast<std::size_t>(run.seconds->samples);
    if (run.seconds->sound()) return;
    flags.push_back(flag(kFewSamples, "warning",
                         fmt::format("{} epoch{} that count{}, six are wanted: the range of the "
                                     "epochs stands for an interval",
                                     counted, counted == 1 ? "" : "s", counted == 1 ? "s" : "")));
    return;
  }
  const std::int64_t samples = run.seconds->samples;
  if (samples >= kEnoughSamples && run.seconds->high > run.seconds->low) return;
  flags.push_back(flag(kFewSamples, "warning",
                       samples < kEnoughSamples
                           ? fmt::format("{} measured iteration{}; {} are wanted", samples,
                                         samples == 1 ? "" : "s", kEnoughSamples)
                           : fmt::format("{} measured iterations without an interval", samples)));
}

void take_stored(const RunView& run, std::vector<Finding>& flags) {
  std::vector<Finding> stored;
  std::vector<std::int64_t> counts;
  for (const Finding& finding : run.findings) {
    if (finding.severity == "note") continue;
    const auto same = [&](const Finding& other) { return other.name == finding.name; };
    if (std::ranges::any_of(flags, same)) continue;
    const auto known = std::ranges::find_if(stored, same);
    if (known != stored.end()) {
      ++counts[static_cast<std::size_t>(known - stored.begin())];
      continue;
    }
    stored.push_back(finding);
    counts.push_back(1);
  }
  for (std::size_t i = 0; i < stored.size(); ++i) {
    if (counts[i] > 1) stored[i].evidence += fmt::format(" (and {} more)", counts[i] - 1);
    flags.push_back(std::move(stored[i]));
  }
}

struct Meaning {
  std::string_view name, sentence;
};
constexpr std::array<Meaning, 19> kMeanings = {{
    {kAtChance, "the network guesses: its accuracy is that of chance"},
    {kNotANumber, "the training diverged: its loss is not a number"},
    {kFrozen, "not all parameters were trained"},
    {kLoaderBound,
     "waits for data during more than a tenth of its time: the loader, not the "
     "device, sets the speed"},
    {kAboveRoof, "lies above its roof: a cost, a time or a ceiling is wrong"},
    {kFewSamples,
     "made from fewer than 10 iterations, or from fewer than six epochs: the range stands for the "
     "interval"},
    {"loader stalls", "some iterations stood still for data"},
    {"noisy neighbour", "other programs used the processors while this was measured"},
    {"thermal throttling", "the device slowed down for heat"},
    {"power throttling", "the device slowed down to keep its power limit"},
    {"hardware slowdown", "the device slowed down by itself"},
    {"clock drop", "the clock fell while this was measured"},
    {"memory pressure", "the machine was short of memory"},
    {"swapping", "the machine swapped memory to disk"},
    {"periodic samples", "every so-many-th iteration differs from the others"},
    {"drift", "iterations became slower or faster while this was measured"},
    {"outliers", "some iterations lie far from the median; all are kept"},
    {"profiling overhead", "watching the iterations made them slower"},
    {"parity", "computes something else than the engine: its losses differ"},
}};

}  // namespace

int gravity(const std::string& severity) {
  return severity == "error" ? 0 : severity == "warning" ? 1 : 2;
}

std::optional<double> wait_share(const RunView& run) {
  if (const auto share = run.number("data_wait_share")) return share;
  double waited = 0.0, seconds = 0.0;
  for (const EpochRecord& epoch : run.epochs) {
    waited += epoch.data_wait_seconds;
    seconds += epoch.seconds;
  }
  if (seconds <= 0.0) return std::nullopt;
  return waited / seconds;
}

double tested_samples(const RunView& run) {
  const std::int64_t tested = run.run.work.test_samples;
  return tested > 0 ? static_cast<double>(tested) : kAssumedTestSamples;
}

bool at_chance(const RunView& run, double accuracy) {
  return ridgeline::at_chance(accuracy, chance_of(run),
                              static_cast<std::int64_t>(tested_samples(run)));
}

std::vector<Finding> flags_of(const Data& data, const RunView& run) {
  std::vector<Finding> flags;
  find_substitute(run, flags);
  find_loss(run, flags);
  find_chance(run, flags);
  find_frozen(run, flags);
  find_loader(run, flags);
  find_roof(data, run, flags);
  find_few(run, flags);
  take_stored(run, flags);
  std::ranges::stable_sort(flags, {}, [](const Finding& flag) { return gravity(flag.severity); });
  return flags;
}

std::string footnote_of(const Finding& flag) {
  const auto found = std::ranges::find(kMeanings, flag.name, &Meaning::name);
  return fmt::format("{}: {}", flag.name,
                     found == kMeanings.end() ? flag.evidence : std::string(found->sentence));
}

}  // namespace ridgeline::report
