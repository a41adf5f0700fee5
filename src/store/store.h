#pragma once

// One SQLite file with everything that was measured. Writers commit in transactions, so that a
// killed program leaves all that it had written down before; several programs may write at once. A
// Store serves one thread at a time and does not pass through fork(): threads and processes open
// their own.

#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "store/records.h"
#include "store/run_filter.h"

namespace ridgeline {

// "2026-11-15T12:44:13.052Z"
[[nodiscard]] std::string utc_now();
// Random, as runs and groups of runs get one.
[[nodiscard]] std::string new_uuid();

struct RunContents;

class Store {
 public:
  // Opens, creates or migrates. Throws bad_input for a file that is no store, that is damaged, or
  // that a newer program has written; a failure when the disk does not let us.
  explicit Store(const std::filesystem::path& path);
  // Read only; the file must exist.
  [[nodiscard]] static Store open_existing(const std::filesystem::path& path);
  Store(Store&&) noexcept;
  Store& operator=(Store&&) noexcept;
  ~Store();

  // Writing. Each call is one transaction.
  void add(const EnvironmentRecord& environment);  // once for each key
  void add(const NetworkRecord& network);          // once for each key
  RunId begin(const RunRecord& run);               // gives it a uuid when it has none
  void add(RunId run, std::span<const Sample> samples);
  void add(RunId run, std::span<const StepTime> steps);
  void add(RunId run, std::span<const Reading> readings);
  void add(RunId run, std::span<const MemoryEntry> memory);
  void add(RunId run, std::span<const Finding> findings);
  void add(RunId run, std::span<const EpochRecord> epochs);
  void add(RunId run, std::span<const LiveEntry> live);
  void add(RunId run, std::span<const TimelineEntry> timeline);
  // Studies by their uuid, items by study and key: new ones are added, known ones replaced.
  void put(const StudyRecord& study);
  void put(std::span<const StudyItemRecord> items);
  // Items that a study does not have any more; their runs stay.
  void remove_items(const std::string& study, std::span<const std::string> keys);
  // Times the end. Numbers and notes come to those that the run has, or replace them.
  void finish(RunId run, RunStatus status, const std::string& error,
              const std::map<std::string, double>& numbers,
              const std::map<std::string, std::string>& notes);
  // Whether runs of an older version lack what this one stores, and can be completed: the store is
  // open for writing, or a copy in memory (complete_runs.h).
  [[nodiscard]] bool wants_completion() const;
  // Adds what a run lacks: the description of its network (none: an empty key), numbers, notes.
  void complete(RunId run, const NetworkRecord& network,
                const std::map<std::string, double>& numbers,
                const std::map<std::string, std::string>& notes);
  // Replaces what was measured of this device in this environment; tells the time where the
  // ceilings do not.
  void replace_ceilings(const std::string& environment, const std::string& device,
                        std::span<const Ceiling> ceilings);
  // Rows of another store, or of a JSON file as docs/store.md tells it, that this one does not have
  // yet: all or, when something is wrong with the file (bad_input), none. The number of new runs.
  std::int64_t import(const std::filesystem::path& other);
  // With all that belongs to them.
  void remove(std::span<const RunId> runs);

  // Reading.
  [[nodiscard]] std::vector<EnvironmentRecord> environments() const;
  [[nodiscard]] std::optional<NetworkRecord> network(const std::string& key) const;
  [[nodiscard]] std::vector<RunRecord> runs(const RunFilter& filter = {}) const;  // oldest first
  [[nodiscard]] std::int64_t run_count() const;
  // By number, by the first letters of its uuid, "last", "last~1" (the one before). Throws
  // bad_input when there is none or more than one.
  [[nodiscard]] RunRecord run(const std::string& name) const;
  [[nodiscard]] std::vector<Sample> samples(RunId run) const;
  [[nodiscard]] std::int64_t sample_count(RunId run, SampleKind kind) const;
  [[nodiscard]] std::vector<StepTime> steps(RunId run) const;
  [[nodiscard]] std::vector<Reading> readings(RunId run) const;
  [[nodiscard]] std::vector<MemoryEntry> memory(RunId run) const;
  [[nodiscard]] std::vector<Finding> findings(RunId run) const;
  [[nodiscard]] std::vector<EpochRecord> epochs(RunId run) const;
  [[nodiscard]] std::vector<LiveEntry> live_bytes(RunId run) const;
  [[nodiscard]] std::vector<TimelineEntry> timeline(RunId run) const;
  [[nodiscard]] std::vector<StudyRecord> studies() const;  // oldest first
  [[nodiscard]] std::vector<StudyItemRecord> study_items(const std::string& study) const;
  [[nodiscard]] std::vector<Ceiling> ceilings(const std::string& environment) const;

 private:
  struct Database;
  template <typename Row>
  void append(RunId run, std::span<const Row> rows);
  bool merge(const RunContents& contents);
  void merge_study(const StudyRecord& theirs, const std::vector<StudyItemRecord>& items);
  void merge_ceilings(const std::string& environment, const std::vector<Ceiling>& theirs);
  std::int64_t import_results(const std::filesystem::path& path);
  explicit Store(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

}  // namespace ridgeline
