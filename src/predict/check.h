#pragma once

// How wrong predictions are: observations are left out in turn and predicted from the others.

#include <map>
#include <vector>

#include "predict/knowledge.h"

namespace ridgeline::predict {

struct HeldBack {
  const Observation* observation = nullptr;
  Unknown unknown = Unknown::batch;  // what was left out with it
  double predicted_seconds = 0.0;
  // The factor, as its logarithm, that the others' errors give for its range; nothing where there
  // are no others.
  std::optional<double> spread = {};

  [[nodiscard]] double log_error() const;  // of predicted / measured
  [[nodiscard]] double error() const;      // |predicted / measured - 1|
};

// Each observation once for each thing to leave out: the same work (batch), the network everywhere
// (network), the device (device). Without the shipped efficiencies, which may have learnt from
// these very runs. What nothing is left for is skipped.
[[nodiscard]] std::vector<HeldBack> hold_back(const std::vector<Observation>& seen);

// The factor, as its logarithm, that 9 of 10 of the errors stay within; with few of them, the
// largest and more. REQUIRES: at least one.
[[nodiscard]] double spread_of(std::vector<double> log_errors);

struct CheckRow {
  Family family = Family::cpu;
  std::string backend;
  Unknown unknown = Unknown::batch;
  std::size_t runs = 0;
  double median_error = 0.0, ninth_decile = 0.0;  // of |error|
  // In the range that the others' errors give; nothing where there is only one.
  std::optional<double> inside_share;
};
[[nodiscard]] std::vector<CheckRow> check_rows(const std::vector<HeldBack>& held);

// By family and backend.
using Spreads = std::map<std::tuple<Family, std::string, Unknown>, double>;
[[nodiscard]] Spreads spreads_of(const std::vector<HeldBack>& held);

}  // namespace ridgeline::predict
