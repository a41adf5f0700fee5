#pragma once

// What 'ridgeline predict' prints.

#include <string>
#include <vector>

#include "predict/training.h"

namespace ridgeline::cli {

struct PredictionView {
  std::vector<predict::Prediction> rows;
  std::vector<std::string> refused;          // why combinations have no row, one sentence each
  std::int64_t samples = 0;                  // of an epoch; 0: none are told
  std::vector<predict::Training> trainings;  // of each row, where samples are told
  std::string currency;
  std::int64_t top = 5;  // ops that are shown
};

[[nodiscard]] std::vector<std::string> prediction_columns();
[[nodiscard]] std::string prediction_text(const PredictionView& view);
[[nodiscard]] std::string prediction_json(const PredictionView& view);
[[nodiscard]] std::string prediction_csv(const PredictionView& view);

struct CheckView {
  std::vector<predict::HeldBack> held;
  std::vector<std::string> left_out;  // runs that say nothing
};
[[nodiscard]] std::string check_text(const CheckView& view);
[[nodiscard]] std::string check_json(const CheckView& view);
[[nodiscard]] std::string check_csv(const CheckView& view);

}  // namespace ridgeline::cli
