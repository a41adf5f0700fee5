#pragma once

// Does a peer compute what we compute? Told by the losses of some steps from the same weights on
// the same batches: gradients that are summed instead of averaged, frozen layers, another
// normalisation or another optimizer show in the second or third at the latest.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "backends/auto.h"
#include "data/dataset.h"
#include "devices/device.h"
#include "peers/peer.h"

namespace ridgeline {

inline constexpr std::int64_t kParitySteps = 3;
// For fp16: small enough that no step of a fresh network is skipped.
inline constexpr double kParityLossScale = 1024.0;

struct PeerParity {
  bool agrees = false;
  double worst = 0.0;      // largest difference, relative; NaN where a loss is not finite
  double tolerance = 0.0;  // of the step where it is
  std::int64_t step = 0;   // from 1
  std::string text;        // for the note "parity" of a run: "3 losses within 2.1e-07"
  // What the reader must know: an error where they differ, nothing where they agree.
  std::optional<Finding> finding;
};

// Losses must be as near as rounding in that precision allows: nearer in the first step, where
// nothing has been learnt yet. `rounding`, where it is known, is what roundings make of each loss;
// three times that is allowed. REQUIRES: as many of one as of the other, at least one.
[[nodiscard]] PeerParity check_parity(std::span<const double> ours, std::span<const double> theirs,
                                      Precision precision, std::span<const double> rounding = {});

// Our losses, as Peer::losses() has the peer's: from the seed's initial weights, batch after batch
// of `files.batches()`, without dropout. `source` as for the files.
[[nodiscard]] std::vector<double> our_losses(const PeerWork& work, const PlanRequest& request,
                                             Device& device, const Dataset& data,
                                             std::uint64_t seed, std::int64_t batches,
                                             std::int64_t steps = kParitySteps,
                                             const WeightFile* source = nullptr);

// How much our losses change, relative, when every weight is rounded otherwise at the start: the
// largest of three tries. Updates and batch norms over few values make much of it in some networks.
[[nodiscard]] std::vector<double> rounding_of_losses(const PeerWork& work,
                                                     const PlanRequest& request, Device& device,
                                                     const Dataset& data, std::uint64_t seed,
                                                     std::int64_t batches,
                                                     std::span<const double> ours);

}  // namespace ridgeline
