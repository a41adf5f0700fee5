// ridgeline study: runs an experiment that a file describes.

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/parse.h"
#include "base/text.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/study_output.h"
#include "cli/tables.h"
#include "measure/machine/environment.h"
#include "study/plan.h"

namespace ridgeline::cli {
namespace {

namespace fs = std::filesystem;

struct StudyOptions {
  std::string name;
  std::string scale = "small";
  std::vector<std::string> only, data;
  StoreOptions store;
  int threads = 0;
  bool restart = false, dry_run = false, json = false;
};

// "a,b" and repeated options.
std::vector<std::string> parts_of(const std::vector<std::string>& given) {
  std::vector<std::string> parts;
  for (const std::string& list : given) {
    for (const std::string_view part : pieces_of(list, ",")) {
      if (!part.empty()) parts.emplace_back(part);
    }
  }
  return parts;
}

// Folders and NAME=PATH of --data. A folder also serves the commands, which look there by name.
study::MachineOptions machine_options(const StudyOptions& options) {
  study::MachineOptions machine;
  for (const std::string& text : options.data) {
    const std::size_t equals = text.find('=');
    const std::string path = equals == std::string::npos ? text : text.substr(equals + 1);
    std::error_code ignored;
    if (!fs::exists(path, ignored)) bad_input("--data {}: '{}' does not exist", text, path);
    const std::string whole = fs::absolute(path, ignored).string();
    if (equals != std::string::npos) {
      machine.data[text.substr(0, equals)] = whole;
      continue;
    }
    if (!machine.data_folder.empty()) {
      bad_input("--data {}: only one folder is possible; name single datasets as NAME=PATH", text);
    }
    if (!fs::is_directory(path, ignored)) {
      bad_input("--data {}: is not a folder; for one dataset write --data NAME={}", text, text);
    }
    machine.data_folder = whole;
    setenv("RIDGELINE_DATA", whole.c_str(), 1);
  }
  return machine;
}

std::string options_text(const StudyOptions& options, const std::vector<std::string>& only) {
  std::vector<std::string> words;
  if (!only.empty()) words.push_back("only=" + joined(only, ","));
  if (!options.data.empty()) words.push_back("data=" + joined(options.data, ","));
  if (options.threads > 0) words.push_back(fmt::format("threads={}", options.threads));
  return joined(words, "; ");
}

int run_study(const StudyOptions& options) {
  const study::Study found = study::find_study(options.name);
  study::StudyChoice planning;
  planning.scale = study::parse_scale(options.scale);
  planning.only = parts_of(options.only);
  planning.threads = options.threads;
  if (options.threads < 0) bad_input("--threads {}: must not be negative", options.threads);
  if (options.store.path == "none") bad_input("a study needs a store; use --store FILE");
  check_store(options.store);

  const EnvironmentRecord environment =
      environment_record(read_environment(), options.store.environment_label);
  study::MachineOptions machine_of = machine_options(options);
  std::error_code ignored;
  if (fs::exists(options.store.path, ignored)) {
    machine_of.ceilings = read_store(options.store).ceilings(environment.key);
  }
  const std::unique_ptr<study::Capabilities> machine = this_machine(std::move(machine_of));
  std::vector<study::PlannedItem> plan = plan_study(found, planning, *machine);

  StudySummary summary;
  summary.study = &found;
  summary.scale = planning.scale;
  summary.store = options.store.path;
  if (options.dry_run) {
    for (const study::PlannedItem& item : plan) summary.items.push_back(item.record);
    print(options.json ? study_json(summary) : study_plan_text(summary));
    return 0;
  }
  {
    Store store(options.store.path);
    store.add(environment);
  }
  study::StudyRun run(found, planning.scale, std::move(plan),
                      {.store = options.store.path,
                       .program = own_program(),
                       .environment = environment.key,
                       .environment_label = options.store.environment_label,
                       .options = options_text(options, planning.only),
                       .restart = options.restart});
  summary.uuid = run.record().uuid;
  summary.resumed = run.resumed();
  summary.items = run.items();
  if (!options.json) {
    if (run.resumed()) {
      print(fmt::format("Continuing the study that started {}{}\n\n", run.record().started,
                        run.record().environment == environment.key
                            ? ""
                            : ", with another build of the program or on another machine"));
    }
    print(study_plan_text(summary) + '\n');
  }
  StudyProgress progress(summary.items);
  const bool whole = run.run(progress);
  summary.interrupted = !whole;
  summary.items = run.items();
  summary.seconds = progress.seconds();
  print(options.json ? study_json(summary) : study_outcome_text(summary));
  if (!whole) return 128 + progress.signal();
  const auto any = [&](ItemStatus status) {
    return std::any_of(summary.items.begin(), summary.items.end(),
                       [&](const StudyItemRecord& item) { return item.status == status; });
  };
  if (any(ItemStatus::failed)) return 1;
  if (!any(ItemStatus::done)) fail("{}", study_idle_text(summary));
  return 0;
}

}  // namespace

void add_study(Parser& program, Action& action) {
  auto options = std::make_shared<StudyOptions>();
  Parser* command =
      program.add_subcommand("study", "Run an experiment: a built-in study or a study file");
  command->heading("Study");
  std::vector<std::string> studies = study::built_in_studies();
  command->add_option("STUDY", options->name, "A study of 'ridgeline study list', or a file")
      ->values(studies);
  command
      ->add_option("--scale NAME", options->scale,
                   "small: minutes on two cores; full: as published")
      ->values({"small", "full"});
  command->add_option("--only PART,...", options->only, "Run only these parts")->expected(1);
  command
      ->add_option("--data PATH", options->data,
                   "Folder with datasets by name, or NAME=PATH for one dataset; can be repeated "
                   "[default: $RIDGELINE_DATA or data]")
      ->expected(1);
  add_threads_option(*command, options->threads);
  command->add_flag("--restart", options->restart,
                    "Start again instead of continuing an interrupted study");
  command->add_flag("--dry-run", options->dry_run, "Only show the plan");
  add_store_option(*command, options->store.path);
  add_environment_label_option(*command, options->store.environment_label);
  add_json_option(*command, options->json);
  add_table_options(*command);
  command->notes(
      "Items that this machine cannot run are left out, with the reason. The same command "
      "continues an interrupted study.");
  command->examples({"ridgeline study quick", "ridgeline study backends --scale full --dry-run",
                     "ridgeline study environments --env-label 'cloud CPU, 4 vCPU' --data ~/data",
                     "ridgeline study roofline --only gpu,ceilings",
                     "ridgeline study show quick > mine.toml; ridgeline study mine.toml",
                     "ridgeline study list"});

  command->heading("");
  Parser* list = command->add_subcommand("list", "List the built-in studies");
  add_json_option(*list, options->json);
  add_table_options(*list);
  list->examples({"ridgeline study list"});
  list->callback([options, &action] {
    action = [options] {
      print(options->json ? study_list_json() : study_list_text());
      return 0;
    };
  });
  Parser* show = command->add_subcommand("show", "Print the file of a study");
  show->add_option("STUDY", options->name, "A study of 'ridgeline study list', or a file")
      ->required()
      ->values(studies);
  show->examples({"ridgeline study show quick > mine.toml"});
  show->callback([options, &action] {
    action = [options] {
      print(study::find_study(options->name).text);
      return 0;
    };
  });
  command->callback([command, options, &action] {
    if (command->subcommand_given()) return;
    action = [command, options] {
      if (options->name.empty()) {
        print(command->help());
        return 0;
      }
      return run_study(*options);
    };
  });
}

}  // namespace ridgeline::cli
