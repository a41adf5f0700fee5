#pragma once

// What a step would take on a device that is not here: time as a range, memory, energy, cost.

#include <optional>
#include <string>
#include <vector>

#include "predict/check.h"
#include "predict/knowledge.h"
#include "predict/prices.h"

namespace ridgeline::predict {

struct Range {
  double low = 0.0, high = 0.0;
};

// Steps of one op and shape.
struct Share {
  std::string ops;   // "conv2d wide"
  std::string roof;  // that most of its time stands under: "memory", "tensor"
  double steps = 0.0;
  double seconds = 0.0;
  double efficiency = 0.0;  // of the roof
};

struct Prediction {
  std::string model, precision, backend;
  bool inference = false;
  std::string image;
  std::int64_t batch = 0;
  Target target;
  Estimate estimate;
  double seconds = 0.0;
  Range range;
  // Factor that another batch of the same network stays within beside this one.
  double batch_factor = 1.0;
  std::string basis;  // what it stands on, in words
  std::int64_t memory_bytes = 0;
  std::optional<std::int64_t> largest_batch;  // nothing: the device's memory is not known
  bool fits = true;
  std::optional<Range> joules;     // of a step
  std::optional<double> per_hour;  // price
  std::vector<Share> shares;       // the most time first

  [[nodiscard]] double samples_per_second() const { return static_cast<double>(batch) / seconds; }
  // Of so many samples: epochs and what they cost.
  [[nodiscard]] Range epoch_seconds(std::int64_t samples) const;
};

struct Question {
  Work work;
  Target target;
  std::string backend;  // empty: the family's usual one
  bool largest_batch = true;
};

// The backend that counts where none is named: native on CPUs, auto on graphics processors.
[[nodiscard]] std::string usual_backend(Family family);

class Predictor {
 public:
  explicit Predictor(const Knowledge& knowledge);

  // Throws bad_input where there is nothing to stand on: no efficiencies of the backend, no rate of
  // the precision, most of the work of kinds that were never seen.
  [[nodiscard]] Prediction predict(const Question& question);

 private:
  [[nodiscard]] const PlannedWork& plan(const Question& question);
  [[nodiscard]] double spread(const Observation& step, const Estimate& estimate,
                              std::string& basis) const;
  // Of errors in which `unknown` was left out; nothing where too few are known.
  [[nodiscard]] std::optional<double> known_spread(const Observation& step, Unknown unknown) const;

  const Knowledge& knowledge_;
  std::vector<HeldBack> held_;
  Spreads spreads_;
  std::map<std::string, PlannedWork> plans_;
};

}  // namespace ridgeline::predict
