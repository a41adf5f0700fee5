#include "report/analysis/ratios.h"

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "report/run_fields.h"
#include "report/table.h"

namespace ridgeline::report {

bool comparable(const RunView& a, const RunView& b) {
  return way_of(a.run) == way_of(b.run) && a.run.work == b.run.work;
}

bool same_place(const RunView& a, const RunView& b) {
  return a.machine == b.machine && a.run.executor == b.run.executor;
}

Ratios::Pair Ratios::side_by_side(const RunView& run, const RunView& than) {
  const std::string key = run_key(run), other_key = run_key(than);
  if (took_turns(run.run, than.run) || key == other_key) return {&run, &than};
  if (repetitions_.empty()) {
    for (const RunView& each : data_.runs()) repetitions_[run_key(each)].push_back(&each);
  }
  const Runs &of = repetitions_[key], &others = repetitions_[other_key];
  for (auto newest = of.rbegin(); newest != of.rend(); ++newest) {
    const auto beside = std::find_if(others.rbegin(), others.rend(), [&](const RunView* other) {
      return took_turns((*newest)->run, other->run);
    });
    if (beside != others.rend()) return {*newest, *beside};
  }
  return {&run, &than};
}

std::optional<Ratio> Ratios::of(const RunView& run, const RunView& than) {
  if (run.run.id == than.run.id || !comparable(run, than)) return std::nullopt;
  const auto [place, fresh] = known_.try_emplace({run.run.id, than.run.id});
  if (!fresh) return place->second;
  const auto [fast, slow] = side_by_side(run, than);
  const std::optional<PairVerdict> pair = judge_.judge(slow->run, fast->run);
  if (!pair) return std::nullopt;
  const Comparison& result = pair->result;
  return place->second = Ratio{.of = fast,
                               .than = slow,
                               .speedup = 1.0 / result.ratio,
                               .low = 1.0 / result.high,
                               .high = 1.0 / result.low,
                               .sound = !result.ranges,
                               .samples = std::min(result.samples_a, result.samples_b),
                               .verdict = result.verdict,
                               .side_by_side = pair->side_by_side,
                               .floor_known = pair->floor.has_value(),
                               .basis = pair->basis,
                               .doubts = pair->doubts};
}

Ratio reversed(const Ratio& ratio) {
  Ratio other = ratio;
  std::swap(other.of, other.than);
  other.speedup = 1.0 / ratio.speedup;
  other.low = 1.0 / ratio.high;
  other.high = 1.0 / ratio.low;
  if (ratio.verdict == Verdict::faster) other.verdict = Verdict::slower;
  if (ratio.verdict == Verdict::slower) other.verdict = Verdict::faster;
  return other;
}

Ratio above_one(const Ratio& ratio) { return ratio.speedup < 1.0 ? reversed(ratio) : ratio; }

std::string times_text(const Ratio& ratio) {
  const std::string text = times_text(Estimate{ratio.speedup, ratio.low, ratio.high, 0});
  return ratio.doubts.empty() ? text : fmt::format("{} ({})", text, ratio.doubts);
}

std::string times_text(const Estimate& ratio) {
  if (ratio.low >= ratio.high) return number_text(ratio.value) + "×";
  return fmt::format("{}× [{}–{}]", number_text(ratio.value), number_text(ratio.low),
                     number_text(ratio.high));
}

std::string doubts_of(const Runs& runs) {
  std::vector<std::string> doubts;
  std::set<std::string> flags;
  for (const RunView* run : runs) {
    if (!took_turns(run->run, runs.front()->run)) doubts = {"measured in different calls"};
    for (const Finding& finding : run->findings) {
      if (is_disturbance(finding)) flags.insert(finding.name);
    }
  }
  if (!flags.empty()) {
    doubts.push_back("flagged: " +
                     joined(std::vector<std::string>(flags.begin(), flags.end()), ", "));
  }
  return joined(doubts, "; ");
}

bool is_above_one(const Estimate& ratio, const std::string& doubts) {
  return ratio.sound() && ratio.low > (doubts.empty() ? 1.0 : kApart);
}

bool is_below_one(const Estimate& ratio, const std::string& doubts) {
  return ratio.sound() && ratio.high < (doubts.empty() ? 1.0 : 1.0 / kApart);
}

Runs newest_of(const Runs& runs) {
  Runs newest;
  for (const RunView* run : runs) {
    const auto older = std::ranges::find_if(newest, [&](const RunView* known) {
      return same_place(*known, *run) && comparable(*known, *run);
    });
    if (older == newest.end()) {
      newest.push_back(run);
    } else {
      *older = run;
    }
  }
  return newest;
}

}  // namespace ridgeline::report
