#pragma once

// From a part's axes to single configurations.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "study/part.h"

namespace ridgeline::study {

// A value of every axis. Empty: the command's own.
struct Configuration {
  std::string model, image, optimizer;
  std::vector<std::int64_t> batches;  // several only for inference: one call measures them all
  std::optional<Precision> precision;
  std::optional<std::int64_t> samples, threads;
  std::optional<double> learning_rate;
  std::map<std::string, std::string> settings;

  bool operator==(const Configuration&) const = default;
  // Words for people: "resnet18, batch 64, bf16".
  [[nodiscard]] std::string text() const;
  // As `--batch` takes it: "64", "full", "1,64".
  [[nodiscard]] std::string batch_text() const;
};

// All of them, each once: every value of every axis with every other; of the axes that are varied
// one at a time, the first values together, then each further value alone.
[[nodiscard]] std::vector<Configuration> expand(const Part& part);

// What tells a configuration from the others of its part: "resnet18/batch=64/lr=0.1". The batch
// stands there wherever the part names it, other axes where they have several values.
[[nodiscard]] std::string key_of(const Part& part, const Configuration& configuration);

}  // namespace ridgeline::study
