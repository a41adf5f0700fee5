// ridgeline backends: who computes, and where.

#include <nlohmann/json.hpp>

#include "backends/auto.h"
#include "backends/registry.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/output.h"
#include "cli/parser.h"

namespace ridgeline::cli {
namespace {

using Json = nlohmann::ordered_json;

// Who serves the ops that a backend lacks.
std::string completion_of(const Backend& backend) {
  std::string names;
  for (const Backend* provider : providers_of(backend.name)) {
    if (provider != &backend) names += (names.empty() ? "" : ", ") + std::string(provider->name);
  }
  return names;
}

int run_backends(bool as_json) {
  Json list = Json::array();
  TextTable table({"backend", "device", "available", "version", "kernel rows", "completed by"},
                  "llllrl");
  for (const Backend* backend : all_backends()) {
    const std::string reason = backend->unavailable();
    const bool available = reason.empty();
    const std::string version = available ? backend->version() : "";
    const std::string completion = available ? completion_of(*backend) : "";
    const std::size_t rows = available ? backend->rows().size() : 0;
    list.push_back({{"name", backend->name},
                    {"device", backend->device},
                    {"available", available},
                    {"reason", reason},
                    {"version", version},
                    {"kernel_rows", rows},
                    {"completed_by", completion}});
    table.add_row({std::string(backend->name), std::string(backend->device),
                   available ? "yes" : "no: " + reason, version, fmt::format("{}", rows),
                   completion.empty() ? "-" : completion});
  }
  if (as_json) {
    print(json_document(Json{{"backends", std::move(list)}}));
  } else {
    print(table.text() +
          "\n--backend auto chooses among them step by step, by measuring; choices are kept in\n" +
          default_choice_cache().string() + '\n');
  }
  return 0;
}

}  // namespace

void add_backends(Parser& program, Action& action) {
  auto as_json = std::make_shared<bool>(false);
  Parser* command = program.add_subcommand("backends", "List the backends: available, or why not");
  command->add_flag("--json", *as_json, "Print one JSON document");
  command->footer("Example:\n  ridgeline backends --json");
  command->callback([as_json, &action] { action = [as_json] { return run_backends(*as_json); }; });
}

}  // namespace ridgeline::cli
