#pragma once

// What a step takes on many ranks: the Plan of one rank in order, with its exchanges of gradients
// on a second queue, as a Session runs it.

#include <optional>
#include <string>
#include <vector>

#include "predict/links.h"
#include "predict/predict.h"

namespace ridgeline::predict {

// One rank's step, as divide_step() makes it: exchanges stand behind the last gradient of a bucket.
struct RankStep {
  double seconds = 0.0;  // of computing; 0: an exchange
  double bytes = 0.0;    // that travel
  bool beside = false;   // while later steps compute
  int needed_by = 0;     // the first step that waits for it
};
struct RankedStep {
  double seconds = 0.0;   // of the whole
  double exchange = 0.0;  // of all exchanges
  double exposed = 0.0;   // in which nothing is computed
};
// `slower`: computing takes so many times as long. Without `overlap` exchanges and computing take
// turns.
[[nodiscard]] RankedStep simulate(const std::vector<RankStep>& steps, const Network& network,
                                  int ranks, int place, double slower, bool overlap);

enum class Scaling : std::uint8_t {
  weak,    // each rank computes the batch
  strong,  // all ranks together compute it
};
[[nodiscard]] std::string_view name_of(Scaling scaling);

struct RankPrediction {
  Prediction one;  // a rank's part of the batch, alone
  Scaling scaling = Scaling::weak;
  int ranks = 1, nodes = 1;
  std::int64_t rank_batch = 0;  // samples of a rank
  double seconds = 0.0;
  Range range;
  double exchange_seconds = 0.0, exposed_seconds = 0.0;
  double exchange_bytes = 0.0;
  // Samples a second over those of one rank that computes the batch alone, divided by the ranks.
  double efficiency = 0.0;
  Range efficiency_range;
  std::string network;

  [[nodiscard]] double samples_per_second() const {
    return static_cast<double>(rank_batch * ranks) / seconds;
  }
};

// Throws bad_input as Predictor::predict() does, and where the ranks cannot share the batch.
[[nodiscard]] RankPrediction predict_ranks(Predictor& predictor, const Question& question,
                                           const Network& network, int ranks, Scaling scaling);

}  // namespace ridgeline::predict
