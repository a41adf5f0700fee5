#pragma once

// Where results are kept: for all that measure or look at measurements.

#include <optional>
#include <string>

#include "store/store.h"

namespace ridgeline {

struct StoreOptions {
  std::string path = "ridgeline.db";  // or "none"
  bool none = false;                  // write nothing down
  std::string environment_label;      // the user's name for this machine
  std::string label;                  // of the runs
  std::string study, item;            // that the runs belong to; 'study' sets them
  std::string arguments;              // the command line, for the record
};

// For commands that measure, before they begin: throws when the store could not be written. Makes
// no file.
void check_store(const StoreOptions& options);
// For writing; nothing with --no-store or --store none.
[[nodiscard]] std::optional<Store> open_store(const StoreOptions& options);
// For reading; throws bad_input when there is none.
[[nodiscard]] Store read_store(const StoreOptions& options);

// What all runs of one call share: environment (which is added to the store), command, command
// line, group, label.
[[nodiscard]] RunRecord begin_record(Store& store, const StoreOptions& options,
                                     const std::string& command);

}  // namespace ridgeline
