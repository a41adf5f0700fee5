#include "lab/store_options.h"

#include "base/writable.h"
#include "lab/complete_runs.h"
#include "measure/machine/environment.h"

namespace ridgeline {
namespace {

bool writes_nothing(const StoreOptions& options) { return options.none || options.path == "none"; }

}  // namespace

void check_store(const StoreOptions& options) {
  if (writes_nothing(options)) return;
  std::error_code ignored;
  if (std::filesystem::exists(options.path, ignored)) {
    const Store store{std::filesystem::path(options.path)};
  } else {
    check_writable(options.path);
  }
}

std::optional<Store> open_store(const StoreOptions& options) {
  if (writes_nothing(options)) return std::nullopt;
  Store store{std::filesystem::path(options.path)};
  complete_runs(store);
  return store;
}

Store read_store(const StoreOptions& options) {
  Store store = Store::open_existing(options.path);
  complete_runs(store);
  return store;
}

RunRecord begin_record(Store& store, const StoreOptions& options, const std::string& command) {
  const EnvironmentRecord environment =
      environment_record(read_environment(), options.environment_label);
  store.add(environment);
  RunRecord run;
  run.environment = environment.key;
  run.command = command;
  run.arguments = options.arguments;
  run.group = new_uuid();
  run.label = options.label;
  run.study = options.study;
  run.item = options.item;
  return run;
}

}  // namespace ridgeline
