#include "cli/store_options.h"

#include <CLI/CLI.hpp>
#include <filesystem>

#include "cli/command_line.h"
#include "lab/environment.h"

namespace ridgeline::cli {

void add_store_options(CLI::App& command, StoreOptions& options) {
  command
      .add_option("--store", options.path, "Write what is measured to this store; none: nowhere")
      ->type_name("FILE")
      ->capture_default_str();
  command.add_option("--label", options.label, "A name for these runs")->type_name("TEXT");
  command
      .add_option("--env-label", options.environment_label,
                  "A name for this machine: \"cloud CPU, 4 vCPU\"")
      ->type_name("TEXT");
}

void check_store(const StoreOptions& options) {
  std::error_code ignored;
  if (options.path == "none" || !std::filesystem::exists(options.path, ignored)) return;
  (void)Store(options.path);
}

std::optional<Store> open_store(const StoreOptions& options) {
  if (options.path == "none") return std::nullopt;
  return Store(options.path);
}

RunRecord begin_record(Store& store, const StoreOptions& options, const std::string& command) {
  const EnvironmentRecord environment =
      environment_record(read_environment(), options.environment_label);
  store.add(environment);
  RunRecord run;
  run.environment = environment.key;
  run.command = command;
  run.arguments = command_text();
  run.label = options.label;
  return run;
}

}  // namespace ridgeline::cli
