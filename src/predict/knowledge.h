#pragma once

// All that predictions stand on: observations, and the shipped efficiencies where there are none.
// What one backend reaches says nothing of another: each is learnt by itself.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "predict/efficiency.h"

namespace ridgeline::predict {

// What was left out when an error was measured, or is unknown when one is made.
enum class Unknown : std::uint8_t { batch, network, device };
[[nodiscard]] std::string_view name_of(Unknown unknown);

// Efficiencies of one backend on one family of devices that come with the program.
struct Shipped {
  Family family = Family::cpu;
  std::string backend;
  std::vector<std::string> devices;  // that they were learnt on
  Efficiencies efficiencies;
  std::map<Unknown, double> spread;  // factor that 9 of 10 errors stay within, as its logarithm
  std::string source;
};

struct Estimate {
  double seconds = 0.0;
  Unknown unknown = Unknown::device;  // how much had to be carried over
  Efficiencies efficiencies;
  double correction = 1.0;    // by other batches of the same network on the same device
  double unseen_share = 0.0;  // of the time that kinds take which no observation had
  std::size_t runs = 0;       // observations behind it
  bool shipped = false;       // that the shipped efficiencies count
};

class Knowledge {
 public:
  Knowledge(std::vector<Shipped> shipped, std::vector<Observation> seen)
      : shipped_(std::move(shipped)), seen_(std::move(seen)) {}

  [[nodiscard]] const std::vector<Observation>& seen() const { return seen_; }
  [[nodiscard]] const Shipped* shipped(Family family, const std::string& backend) const;
  [[nodiscard]] const std::vector<Shipped>& all_shipped() const { return shipped_; }
  // Of a family: those that something is known of.
  [[nodiscard]] std::vector<std::string> backends(Family family) const;

  // What a step is, for an estimate: an observation without a time. `leave_out` are observations
  // that must not count. Nothing where nothing is known of the backend on that family.
  [[nodiscard]] std::optional<Estimate> estimate(
      const Observation& step, const std::function<bool(const Observation&)>& leave_out = {}) const;

 private:
  std::vector<Shipped> shipped_;
  std::vector<Observation> seen_;
};

}  // namespace ridgeline::predict
