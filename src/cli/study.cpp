// ridgeline study: runs an experiment that a file describes.

#include <algorithm>

#include "base/error.h"
#include "cli/command.h"
#include "cli/command_line.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/parser.h"
#include "cli/study_output.h"
#include "cli/tables.h"
#include "study/request.h"

namespace ridgeline::cli {
namespace {

struct StudyOptions {
  study::StudyRequest request;
  bool dry_run = false, json = false;
};

int run_study(const StudyOptions& options) {
  study::StudyRequest request = options.request;
  request.program = own_program();
  study::PreparedStudy prepared = prepare_study(request);
  StudySummary summary;
  summary.study = &prepared.study;
  summary.scale = prepared.choice.scale;
  summary.store = request.store.path;
  if (options.dry_run) {
    for (const study::PlannedItem& item : prepared.plan) summary.items.push_back(item.record);
    print(options.json ? study_json(summary) : study_plan_text(summary));
    return 0;
  }
  study::StudyRun run = begin_study(request, prepared);
  summary.uuid = run.record().uuid;
  summary.resumed = run.resumed();
  summary.items = run.items();
  if (!options.json) {
    if (run.resumed()) {
      print(fmt::format("Continuing the study that started {}{}\n\n", run.record().started,
                        run.record().environment == prepared.environment.key
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
  command
      ->add_option("STUDY", options->request.name, "A study of 'ridgeline study list', or a file")
      ->values(studies);
  command
      ->add_option("--scale NAME", options->request.scale,
                   "small: minutes on two cores; full: as published")
      ->values({"small", "full"});
  command->add_option("--only PART,...", options->request.only, "Run only these parts")
      ->expected(1);
  command
      ->add_option("--data PATH", options->request.data,
                   "Folder with datasets by name, or NAME=PATH for one dataset; can be repeated "
                   "[default: $RIDGELINE_DATA or data]")
      ->expected(1);
  add_threads_option(*command, options->request.threads);
  command->add_flag("--restart", options->request.restart,
                    "Start again instead of continuing an interrupted study");
  command->add_flag("--dry-run", options->dry_run, "Only show the plan");
  add_store_option(*command, options->request.store.path);
  add_environment_label_option(*command, options->request.store.environment_label);
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
  show->add_option("STUDY", options->request.name, "A study of 'ridgeline study list', or a file")
      ->required()
      ->values(studies);
  show->examples({"ridgeline study show quick > mine.toml"});
  show->callback([options, &action] {
    action = [options] {
      print(study::find_study(options->request.name).text);
      return 0;
    };
  });
  command->callback([command, options, &action] {
    if (command->subcommand_given()) return;
    action = [command, options] {
      if (options->request.name.empty()) {
        print(command->help());
        return 0;
      }
      return run_study(*options);
    };
  });
}

}  // namespace ridgeline::cli
