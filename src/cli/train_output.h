#pragma once

// What `train` tells: header, table, summary, and the epochs as CSV.

#include <string>

#include "documents/train.h"

namespace ridgeline::cli {

[[nodiscard]] std::string header_text(const TrainReport& report);
[[nodiscard]] std::string table_header(const TrainConfig& config);
[[nodiscard]] std::string table_row(const TrainConfig& config, const EpochResult& epoch);
[[nodiscard]] std::string summary_text(const TrainReport& report);
[[nodiscard]] std::string train_csv(const TrainReport& report);

}  // namespace ridgeline::cli
