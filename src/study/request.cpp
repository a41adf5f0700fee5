#include "study/request.h"

#include <cstdlib>
#include <filesystem>

#include "base/error.h"
#include "base/parse.h"
#include "base/text.h"
#include "measure/machine/environment.h"

namespace ridgeline::study {
namespace {

namespace fs = std::filesystem;

// "a,b" and repeated options.
std::vector<std::string> listed_parts(const std::vector<std::string>& given) {
  std::vector<std::string> parts;
  for (const std::string& list : given) {
    for (const std::string_view part : pieces_of(list, ",")) {
      if (!part.empty()) parts.emplace_back(part);
    }
  }
  return parts;
}

// Folders and NAME=PATH of --data. A folder also serves the commands, which look there by name.
MachineOptions machine_options(const StudyRequest& request) {
  MachineOptions machine;
  for (const std::string& text : request.data) {
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

std::string options_text(const StudyRequest& request, const std::vector<std::string>& only) {
  std::vector<std::string> words;
  if (!only.empty()) words.push_back("only=" + joined(only, ","));
  if (!request.data.empty()) words.push_back("data=" + joined(request.data, ","));
  if (request.threads > 0) words.push_back(fmt::format("threads={}", request.threads));
  return joined(words, "; ");
}

}  // namespace

PreparedStudy prepare_study(const StudyRequest& request) {
  PreparedStudy prepared;
  prepared.study = find_study(request.name);
  prepared.choice = {.scale = parse_scale(request.scale),
                     .only = listed_parts(request.only),
                     .threads = request.threads};
  if (request.threads < 0) bad_input("--threads {}: must not be negative", request.threads);
  if (request.store.path == "none") bad_input("a study needs a store; use --store FILE");
  check_store(request.store);
  prepared.environment = environment_record(read_environment(), request.store.environment_label);
  MachineOptions machine = machine_options(request);
  std::error_code ignored;
  if (fs::exists(request.store.path, ignored)) {
    machine.ceilings = read_store(request.store).ceilings(prepared.environment.key);
  }
  prepared.plan = plan_study(prepared.study, prepared.choice, *this_machine(std::move(machine)));
  return prepared;
}

StudyRun begin_study(const StudyRequest& request, PreparedStudy& prepared) {
  {
    Store store(request.store.path);
    store.add(prepared.environment);
  }
  return {prepared.study,
          prepared.choice.scale,
          std::move(prepared.plan),
          {.store = request.store.path,
           .program = request.program,
           .environment = prepared.environment.key,
           .environment_label = request.store.environment_label,
           .options = options_text(request, prepared.choice.only),
           .restart = request.restart}};
}

}  // namespace ridgeline::study
