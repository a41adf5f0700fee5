#pragma once

// A training as a JSON document.

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "lab/train.h"

namespace ridgeline {

[[nodiscard]] nlohmann::ordered_json epoch_json(const EpochResult& epoch);
[[nodiscard]] std::string train_json(const TrainReport& report);

}  // namespace ridgeline
