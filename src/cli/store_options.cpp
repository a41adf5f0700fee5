#include "cli/store_options.h"

#include <fstream>

#include "cli/output.h"
#include "cli/parser.h"
#include "lab/environment.h"

namespace ridgeline::cli {
namespace {

// As the system keeps it, words that need it quoted.
std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::string text;
  for (std::string word; std::getline(file, word, '\0');) {
    const bool plain = !word.empty() && word.find_first_of(" \t\n'\"\\$*?;&|<>()") == word.npos;
    if (!text.empty()) text += ' ';
    text += plain ? word : "'" + word + "'";
  }
  return text;
}

bool writes_nothing(const StoreOptions& options) { return options.none || options.path == "none"; }

}  // namespace

void add_store_option(Parser& command, StoreOptions& options) {
  command.add_option("--store", options.path, "The file with the results")
      ->type_name("FILE")
      ->capture_default_str();
}

void add_store_options(Parser& command, StoreOptions& options) {
  add_store_option(command, options);
  command.add_flag("--no-store", options.none, "Write nothing into the store, as --store none");
  command
      .add_option("--env-label", options.environment_label,
                  "Your name for this machine, for example 'cloud CPU, 4 vCPU'")
      ->type_name("TEXT");
  command.add_option("--label", options.label, "Your name for these runs")->type_name("TEXT");
  // Not for people: 'study' tells its commands where their runs belong. Not shown in the help.
  command
      .add_pair("--study-item", options.study, options.item,
                "The uuid of a study and the key of an item of it")
      ->hidden();
}

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
  return Store(std::filesystem::path(options.path));
}

Store read_store(const StoreOptions& options) { return Store::open_existing(options.path); }

RunRecord begin_record(Store& store, const StoreOptions& options, const std::string& command) {
  const EnvironmentRecord environment =
      environment_record(read_environment(), options.environment_label);
  store.add(environment);
  RunRecord run;
  run.environment = environment.key;
  run.command = command;
  run.arguments = command_line();
  run.group = new_uuid();
  run.label = options.label;
  run.study = options.study;
  run.item = options.item;
  return run;
}

}  // namespace ridgeline::cli
