#include "analysis/compare/alike.h"

#include "base/error.h"
#include "base/text.h"
#include "store/identity_fields.h"

namespace ridgeline {
namespace {

std::vector<Difference> differences_of(const RunRecord& a, const RunRecord& b, bool of_work) {
  const auto text = [](const IdentityField& field, const RunRecord& run) {
    const std::string value = field.text(run);
    return !value.empty() ? value : std::string(field.is_flag ? "no" : "none");
  };
  std::vector<Difference> found;
  for (const IdentityField& field : identity_fields()) {
    if (field.of_work != of_work || field.equal(a, b)) continue;
    found.push_back({std::string(field.label), text(field, a), text(field, b)});
  }
  return found;
}

}  // namespace

std::string Difference::text() const { return fmt::format("{}: {} against {}", field, a, b); }

std::string differences_text(const std::vector<Difference>& differences) {
  std::vector<std::string> texts;
  for (const Difference& difference : differences) texts.push_back(difference.text());
  return joined(texts, "; ");
}

std::vector<Difference> work_differences(const RunRecord& a, const RunRecord& b) {
  return differences_of(a, b, true);
}

std::vector<Difference> executor_differences(const RunRecord& a, const RunRecord& b) {
  return differences_of(a, b, false);
}

bool took_turns(const RunRecord& a, const RunRecord& b) {
  const auto ended_before = [](const RunRecord& first, const RunRecord& second) {
    return !first.finished.empty() && first.finished < second.started;
  };
  return !a.group.empty() && a.group == b.group && a.turns == b.turns && !ended_before(a, b) &&
         !ended_before(b, a);
}

Way way_of(const RunRecord& run) {
  if (run.command == "train") return Way::training;
  return run.command == "profile" ? Way::profile : Way::iterations;
}

bool repeats(const RunRecord& a, const RunRecord& b) {
  return a.work == b.work && a.executor == b.executor && a.environment == b.environment;
}

}  // namespace ridgeline
