#pragma once

// A step of another framework in a process of its own, measured beside ours.

#include <memory>

#include "measure/iterations/measured_step.h"
#include "peers/parity.h"
#include "peers/peer.h"

namespace ridgeline {

struct PeerStepConfig {
  Work work;
  Executor executor;
  PeerName name;
  PeerOptions options;
  std::shared_ptr<PeerStarts> starts;  // shared by the steps of one call
  PeerWork peer_work;
  // Who computes the losses that the peer's are compared with, and where.
  PlanRequest ours;
  std::shared_ptr<Device> device;
  std::shared_ptr<const Dataset> data;  // in memory, at least a batch
  std::uint64_t seed = 0;
};

// Asks whether the peer can run here; throws bad_input with the reason where it cannot.
[[nodiscard]] std::unique_ptr<MeasuredStep> make_peer_step(PeerStepConfig config);

}  // namespace ridgeline
