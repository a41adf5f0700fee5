#pragma once

// A study as somebody asks for it, and what becomes of that on this machine: what `ridgeline study`
// does before it runs.

#include <string>
#include <vector>

#include "lab/store_options.h"
#include "study/runner.h"

namespace ridgeline::study {

struct StudyRequest {
  std::string name;  // a built-in one, or a file
  std::string scale = "small";
  std::vector<std::string> only, data;  // parts; a folder of datasets, or NAME=PATH
  StoreOptions store;
  int threads = 0;
  bool restart = false;
  std::string program;  // that knows the commands
};

struct PreparedStudy {
  Study study;
  StudyChoice choice;
  EnvironmentRecord environment;
  std::vector<PlannedItem> plan;
};

// Throws bad_input for what is not there or makes no sense.
[[nodiscard]] PreparedStudy prepare_study(const StudyRequest& request);
// Writes the study down, or takes up one that was interrupted. Takes the plan.
[[nodiscard]] StudyRun begin_study(const StudyRequest& request, PreparedStudy& prepared);

}  // namespace ridgeline::study
