#pragma once

// Where commands that measure write their runs, and what the user calls them.

#include <optional>
#include <string>

#include "lab/store/store.h"

namespace CLI {
class App;
}

namespace ridgeline::cli {

struct StoreOptions {
  std::string path = "ridgeline.db";  // "none": nothing is stored
  std::string label, environment_label;
};
// --store, --label, --env-label.
void add_store_options(CLI::App& command, StoreOptions& options);

// Throws bad_input for a file that is there and no store. Makes none.
void check_store(const StoreOptions& options);
// Nothing where nothing is to be stored.
[[nodiscard]] std::optional<Store> open_store(const StoreOptions& options);
// A run of this process as it begins: environment (put into the store), command line, label, time.
[[nodiscard]] RunRecord begin_record(Store& store, const StoreOptions& options,
                                     const std::string& command);

}  // namespace ridgeline::cli
