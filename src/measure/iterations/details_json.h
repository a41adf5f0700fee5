#pragma once

// Details of a step as JSON and back, from one process to another.

#include <nlohmann/json.hpp>

#include "measure/iterations/measured_step.h"
#include "store/field_json.h"

namespace ridgeline {

[[nodiscard]] inline nlohmann::ordered_json details_json(const StepDetails& details) {
  return {{"steps", list_json(details.steps)},
          {"memory", list_json(details.memory)},
          {"findings", list_json(details.findings)},
          {"kernels", details.kernels},
          {"numbers", details.numbers},
          {"notes", details.notes}};
}

[[nodiscard]] inline StepDetails read_details(const nlohmann::ordered_json& json) {
  return {.steps = read_list<StepTime>(json.at("steps")),
          .memory = read_list<MemoryEntry>(json.at("memory")),
          .findings = read_list<Finding>(json.at("findings")),
          .kernels = json.at("kernels").get<std::vector<std::string>>(),
          .numbers = json.at("numbers").get<std::map<std::string, double>>(),
          .notes = json.at("notes").get<std::map<std::string, std::string>>()};
}

}  // namespace ridgeline
