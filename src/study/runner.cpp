#include "study/runner.h"

#include <algorithm>
#include <set>

#include "base/clock.h"
#include "base/error.h"
#include "study/child.h"

namespace ridgeline::study {
namespace {

constexpr std::size_t kLongestReason = 500;

bool same_study(const StudyRecord& a, const StudyRecord& b) {
  return a.name == b.name && a.scale == b.scale && a.definition == b.definition &&
         a.options == b.options;
}

// The environments of the machine that has this one.
std::set<std::string> environments_of_machine(const Store& store, const std::string& key) {
  const std::vector<EnvironmentRecord> all = store.environments();
  const auto own =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.key == key; });
  std::set<std::string> keys = {key};
  for (const EnvironmentRecord& one : all) {
    if (own != all.end() && one.machine() == own->machine()) keys.insert(one.key);
  }
  return keys;
}

// On one line, and not too long.
std::string shortened(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (text.size() <= kLongestReason) return text;
  std::size_t end = kLongestReason;
  while ((text[end] & 0xC0) == 0x80) --end;  // within a character
  return text.substr(0, end) + " …";
}

// A candidate that a command left out of an item.
StudyItemRecord left_out_of(const StudyItemRecord& item, const CandidateOutcome& candidate) {
  const ExecutorName executor{candidate.backend, candidate.device};
  StudyItemRecord left = item;
  left.key += fmt::format("/batch={}/{}", candidate.batch, executor.key());
  left.title = fmt::format("{}, batch {}: {}", candidate.model, candidate.batch, executor.text());
  left.status = ItemStatus::left_out;
  left.reason = shortened(candidate.reason);
  left.estimated_seconds = 0.0;
  left.seconds.reset();
  return left;
}

}  // namespace

StudyRun::StudyRun(const Study& study, Scale scale, std::vector<PlannedItem> plan, StudyCall call)
    : call_(std::move(call)), store_(call_.store), plan_(std::move(plan)) {
  StudyRecord wanted;
  wanted.uuid = new_uuid();
  wanted.name = study.definition.name;
  wanted.scale = std::string(name_of(scale));
  wanted.environment = call_.environment;
  wanted.options = call_.options;
  wanted.definition = study.text;
  wanted.started = utc_now();
  open(wanted);
}

void StudyRun::open(const StudyRecord& wanted) {
  const std::set<std::string> here = environments_of_machine(store_, call_.environment);
  const auto newest = [&]() -> std::optional<StudyRecord> {
    std::optional<StudyRecord> found;
    for (const StudyRecord& record : store_.studies()) {
      if (same_study(record, wanted) && here.contains(record.environment) &&
          record.finished.empty()) {
        found = record;
      }
    }
    return found;
  };
  std::optional<StudyRecord> former;
  if (!call_.restart) former = newest();
  record_ = former.value_or(wanted);
  lock_ = std::make_unique<StudyLock>(call_.store, record_.uuid);
  // The process that had the lock before may have finished the study meanwhile.
  if (former) {
    const std::optional<StudyRecord> still = newest();
    if (!still || still->uuid != former->uuid) {
      former.reset();
      record_ = wanted;
      lock_ = std::make_unique<StudyLock>(call_.store, record_.uuid);
    }
  }
  resumed_ = former.has_value();
  for (PlannedItem& item : plan_) item.record.study = record_.uuid;
  if (resumed_) take_over(store_.study_items(record_.uuid));
  store_.put(record_);
  const std::vector<StudyItemRecord> all = items();
  store_.put(all);
}

// What a former call did and this plan still wants stays; the rest goes.
void StudyRun::take_over(const std::vector<StudyItemRecord>& former) {
  std::set<std::string> planned;
  for (PlannedItem& item : plan_) {
    planned.insert(item.record.key);
    const auto known =
        std::find_if(former.begin(), former.end(),
                     [&](const StudyItemRecord& record) { return record.key == item.record.key; });
    if (known == former.end() || item.words.empty() || known->command != item.record.command) {
      continue;
    }
    // Also what a command found to be too large for the machine.
    if (known->status == ItemStatus::done || known->status == ItemStatus::left_out) {
      const std::int64_t number = item.record.number;
      item.record = *known;
      item.record.number = number;
    }
  }
  std::vector<std::string> gone;
  for (const StudyItemRecord& record : former) {
    if (planned.contains(record.key)) continue;
    // What a command that is done had left out by itself.
    const auto owner = std::find_if(plan_.begin(), plan_.end(), [&](const PlannedItem& item) {
      return item.record.status == ItemStatus::done &&
             record.key.starts_with(item.record.key + "/");
    });
    if (owner != plan_.end() && record.status == ItemStatus::left_out) {
      further_.push_back(record);
      continue;
    }
    gone.push_back(record.key);
    remove_runs(record.key);
  }
  store_.remove_items(record_.uuid, gone);
}

std::vector<StudyItemRecord> StudyRun::items() const {
  std::vector<StudyItemRecord> all;
  for (const PlannedItem& item : plan_) {
    all.push_back(item.record);
    for (const StudyItemRecord& each : further_) {
      if (each.number == item.record.number) all.push_back(each);
    }
  }
  return all;
}

void StudyRun::remove_runs(const std::string& key) {
  std::vector<RunId> gone;
  for (const RunRecord& run : store_.runs({{"study", record_.uuid}})) {
    if (run.item == key) gone.push_back(run.id);
  }
  if (!gone.empty()) store_.remove(gone);
}

bool StudyRun::ceilings_known(const std::string& device) const {
  const std::vector<Ceiling> known = store_.ceilings(call_.environment);
  return std::any_of(known.begin(), known.end(),
                     [&](const Ceiling& ceiling) { return ceiling.device == device; });
}

bool StudyRun::run(StudyObserver& observer) {
  for (std::size_t i = 0; i < plan_.size(); ++i) {
    const ItemStatus status = plan_[i].record.status;
    if (status == ItemStatus::done || status == ItemStatus::left_out) continue;
    if (!observer.go_on() || !run_item(i, observer)) return false;
  }
  const bool failed = std::any_of(plan_.begin(), plan_.end(), [](const PlannedItem& item) {
    return item.record.status == ItemStatus::failed;
  });
  // What failed can be tried again by the same call: such a study is not finished.
  if (failed) return true;
  record_.finished = utc_now();
  store_.put(record_);
  return true;
}

bool StudyRun::run_item(std::size_t index, StudyObserver& observer) {
  PlannedItem& item = plan_[index];
  item.record.status = ItemStatus::waiting;
  item.record.reason.clear();
  item.record.seconds.reset();
  observer.begun(item.record);
  // Of a call that was killed.
  remove_runs(item.record.key);
  const auto start = Clock::now();
  const bool ceilings = !item.ceilings_of.empty();
  ChildEnding ending;
  if (!ceilings || !ceilings_known(item.ceilings_of)) {
    std::vector<std::string> words = {call_.program};
    words.insert(words.end(), item.words.begin(), item.words.end());
    words.insert(words.end(), {"--store", call_.store.string()});
    if (!call_.environment_label.empty()) {
      words.insert(words.end(), {"--env-label", call_.environment_label});
    }
    if (!ceilings) words.insert(words.end(), {"--study-item", record_.uuid, item.record.key});
    ending = run_child(std::move(words), [&] { return observer.go_on(); });
  }
  if (ending.stopped) {
    remove_runs(item.record.key);
    return false;
  }
  item.record.seconds = seconds_since(start);
  item.record.status = ending.outcome.status;
  item.record.reason = shortened(ending.outcome.reason);
  std::vector<StudyItemRecord> changed = {item.record};
  if (item.record.status == ItemStatus::done) {
    for (const CandidateOutcome& candidate : ending.outcome.left_out) {
      changed.push_back(left_out_of(item.record, candidate));
    }
  }
  further_.insert(further_.end(), changed.begin() + 1, changed.end());
  store_.put(changed);
  observer.ended(item.record);
  return true;
}

}  // namespace ridgeline::study
