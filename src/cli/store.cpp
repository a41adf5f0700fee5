// ridgeline store: looks at what was measured, merges it, exports it.

#include <nlohmann/json.hpp>
#include <set>

#include "analysis/compare/stored.h"
#include "base/error.h"
#include "base/json_text.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/store_output.h"
#include "cli/tables.h"
#include "lab/complete_runs.h"
#include "store/columns.h"
#include "store/import_file.h"

namespace ridgeline::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// Which runs: conditions by the name of their field.
struct Choice {
  std::map<std::string, std::optional<std::string>> conditions;
  std::string where;  // more of them
  std::optional<std::int64_t> limit;
};

struct StoreCommand {
  StoreOptions store;
  Choice choice;
  std::vector<std::string> names;  // of runs, or files
  std::string csv, google;
  bool json = false;
};

// Runs by their names, each once, in the order given.
std::vector<RunRecord> runs_named(const Store& store, const std::vector<std::string>& names) {
  std::vector<RunRecord> runs;
  std::set<RunId> seen;
  for (const std::string& name : names) {
    RunRecord run = store.run(name);
    if (seen.insert(run.id).second) runs.push_back(std::move(run));
  }
  return runs;
}

std::vector<RunRecord> runs_chosen(const Store& store, const Choice& choice) {
  if (choice.limit && *choice.limit < 1) {
    bad_input("--limit {}: must be at least 1", *choice.limit);
  }
  RunFilter filter;
  if (!choice.where.empty()) filter = parse_run_filter(choice.where);
  for (const auto& [name, value] : choice.conditions) {
    if (value) filter[name] = *value;
  }
  std::vector<RunRecord> runs = store.runs(filter);
  const auto most = static_cast<std::size_t>(choice.limit.value_or(0));
  if (choice.limit && runs.size() > most) {
    runs.erase(runs.begin(), runs.end() - static_cast<std::ptrdiff_t>(most));
  }
  return runs;
}

std::string runs_text(std::int64_t count) {
  return fmt::format("{} run{}", count_text(count), count == 1 ? "" : "s");
}

int run_list(const StoreCommand& options) {
  const Store store = read_store(options.store);
  const std::vector<RunRecord> runs = runs_chosen(store, options.choice);
  print(options.json ? list_json(store, runs) : list_text(store, runs));
  return 0;
}

int run_show(const StoreCommand& options) {
  const Store store = read_store(options.store);
  const RunRecord run = find_run(store, options.names.front());
  print(options.json ? show_json(store, run) : show_text(store, run));
  return 0;
}

int run_import(const StoreCommand& options) {
  for (const std::string& name : options.names) check_importable(name);  // before a store is made
  Store store{fs::path(options.store.path)};
  Json files = Json::array();
  std::string text;
  for (const std::string& name : options.names) {
    const std::int64_t added = store.import(name);
    files.push_back({{"file", name}, {"new_runs", added}});
    text += fmt::format("{}: {}\n", name,
                        added == 0 ? "nothing new, all its runs are in the store already"
                                   : runs_text(added) + " added to " + options.store.path);
  }
  complete_runs(store);
  const std::int64_t count = store.run_count();
  print(options.json
            ? json_document(
                  Json{{"store", options.store.path}, {"runs", count}, {"files", std::move(files)}})
            : text);
  return 0;
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored) || !path.has_filename() || !path.has_extension();
}

int run_export(const StoreCommand& options) {
  if (options.csv.empty() && options.google.empty()) {
    bad_input("no output given; use --csv FILE.csv, --csv FOLDER or --google-benchmark FILE");
  }
  const Store store = read_store(options.store);
  const std::vector<RunRecord> runs =
      options.names.empty() ? runs_chosen(store, options.choice) : runs_named(store, options.names);
  if (runs.empty()) bad_input("{}: no run matches", options.store.path);
  std::vector<std::string> written;
  if (!options.csv.empty() && is_folder(options.csv)) {
    write_tables_csv(store, runs, options.csv);
    written.push_back(options.csv);
  } else if (!options.csv.empty()) {
    check_writable(options.csv);
    (void)write_samples_csv(store, runs, options.csv);
    written.push_back(options.csv);
  }
  if (!options.google.empty()) {
    check_writable(options.google);
    write_file_atomically(options.google, google_benchmark_json(store, runs));
    written.push_back(options.google);
  }
  print(options.json
            ? json_document(Json{{"runs", runs.size()}, {"written", written}})
            : fmt::format("{} written to {}\n", runs_text(static_cast<std::int64_t>(runs.size())),
                          joined(written, ", ")));
  return 0;
}

int run_delete(const StoreCommand& options) {
  std::error_code ignored;
  // Opening would make a new one.
  if (!fs::exists(options.store.path, ignored)) (void)read_store(options.store);
  Store store{fs::path(options.store.path)};
  std::vector<RunId> ids;
  for (const RunRecord& run : runs_named(store, options.names)) ids.push_back(run.id);
  store.remove(ids);
  print(options.json
            ? json_document(Json{{"deleted", ids}})
            : fmt::format("{} deleted\n", runs_text(static_cast<std::int64_t>(ids.size()))));
  return 0;
}

Json names_json(std::span<const RegisteredName> names) {
  Json list = Json::array();
  for (const RegisteredName& name : names) {
    list.push_back({{"name", name.name}, {"unit", name.unit}, {"meaning", name.meaning}});
  }
  return list;
}

int run_columns(const StoreCommand& options) {
  if (!options.json) {
    print(registry_markdown());
    return 0;
  }
  Json list = Json::array();
  for (const Table& each : tables()) {
    Json columns = Json::array();
    for (const Column& column : each.columns) {
      columns.push_back({{"name", column.name},
                         {"type", sql_name(column.type)},
                         {"unit", column.unit},
                         {"meaning", column.meaning}});
    }
    list.push_back(
        {{"name", each.name}, {"meaning", each.meaning}, {"columns", std::move(columns)}});
  }
  print(json_document(Json{{"tables", std::move(list)},
                           {"numbers", names_json(number_names())},
                           {"notes", names_json(note_names())},
                           {"sensors", names_json(sensor_names())}}));
  return 0;
}

void add_choice_options(Parser& command, Choice& choice) {
  struct Condition {
    const char *name, *meaning;
  };
  constexpr Condition kConditions[] = {
      {"command", "Only runs of this command: bench, train, profile"},
      {"model", "Only runs of this model"},
      {"backend", "Only runs of this backend or peer"},
      {"device", "Only runs on this device"},
      {"label", "Only runs with this --label"},
      {"group", "Only runs of the call with this uuid"},
      {"environment", "Only runs of the environment with this key"}};
  command.heading("Choice of runs");
  for (const Condition& each : kConditions) {
    command.add_option(fmt::format("--{} TEXT", each.name), choice.conditions[each.name],
                       each.meaning);
  }
  command.add_option("--where NAME=VALUE,...", choice.where,
                     "Only runs with these values, such as batch=64,precision=bf16; 'ridgeline "
                     "store columns' lists the names");
  command.add_option("--limit N", choice.limit, "Only the newest N runs");
}

constexpr const char* kRunNames =
    "A run number, the first letters of a uuid, 'last' or 'last~1' (the one before)";

}  // namespace

void add_store(Parser& program, Action& action) {
  auto options = std::make_shared<StoreCommand>();
  Parser* command =
      program.add_subcommand("store", "List, show, import, export and delete stored runs");
  const auto add = [&](const char* name, const char* meaning, int (*run)(const StoreCommand&)) {
    Parser* sub = command->add_subcommand(name, meaning);
    sub->callback([options, run, &action] { action = [options, run] { return run(*options); }; });
    return sub;
  };
  const auto add_common = [&](Parser* sub) {
    add_store_option(*sub, options->store.path);
    add_json_option(*sub, options->json);
  };
  Parser* list = add("list", "List the runs in the store", run_list);
  add_choice_options(*list, options->choice);
  add_common(list);
  add_table_options(*list, list_columns());
  list->examples({"ridgeline store list",
                  "ridgeline store list --model resnet18 --device cpu --limit 20",
                  "ridgeline store list --where batch=64,recompute=yes"});

  Parser* show = add("show", "Show everything about one run", run_show);
  show->heading("Run");
  show->add_option("RUN", options->names,
                   std::string(kRunNames) +
                       ", or conditions such as label=before,backend=native "
                       "(the newest match)")
      ->required()
      ->expected(1);
  add_common(show);
  add_table_options(*show);
  show->examples({"ridgeline store show last", "ridgeline store show 12 --json",
                  "ridgeline store show label=before,backend=native"});

  Parser* import = add("import", "Add the runs of other stores or result files", run_import);
  import->heading("Files");
  import->add_option("FILE", options->names, "Stores, or JSON files (see docs/store.md)")
      ->required();
  add_common(import);
  import->notes("Runs that are already in the store are skipped: importing twice is harmless.");
  import->examples(
      {"ridgeline store import gpu-server.db", "ridgeline store import mac.json --store all.db"});

  Parser* out = add("export", "Write runs to CSV or JSON files for other programs", run_export);
  add_choice_options(*out, options->choice);
  out->add_option("--runs RUN,...", options->names, "Only these runs, named as for 'store show'")
      ->delimiter(',');
  add_common(out);
  out->add_option("--csv PATH", options->csv,
                  "FILE.csv: one row per sample; a folder: one file per table");
  out->add_option("--google-benchmark FILE", options->google,
                  "JSON in the format of Google Benchmark, for its compare.py");
  out->notes("Column names include units; 'ridgeline store columns' explains the columns.");
  out->examples({"ridgeline store export --csv samples.csv --runs last,last~1",
                 "ridgeline store export --csv results/ --model resnet18",
                 "ridgeline store export --google-benchmark after.json --runs 12"});

  Parser* remove = add("delete", "Delete runs with all their data", run_delete);
  remove->heading("Runs");
  remove->add_option("RUN", options->names, kRunNames)->required();
  add_common(remove);
  remove->examples({"ridgeline store delete 3 4 last"});

  Parser* columns = add("columns", "List the store's tables, columns and units", run_columns);
  add_common(columns);
  columns->examples({"ridgeline store columns --json"});
  help_without_subcommand(*command, action);
  command->examples({"ridgeline store list", "ridgeline store show last",
                     "ridgeline store import gpu-server.db",
                     "ridgeline store export --csv samples.csv"});
}

}  // namespace ridgeline::cli
