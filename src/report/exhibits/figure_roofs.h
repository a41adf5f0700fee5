#pragma once

// Roofs as lines: what the devices of a figure can do at most.

#include <set>
#include <string>
#include <vector>

#include "report/exhibits/figure_runs.h"

namespace ridgeline::report {

// The roofs of one device as some runs use it, with the compute units that they use.
struct DeviceRoofs {
  std::string name;  // "laptop, cpu": also the group of its series
  Roofs roofs;
  std::set<std::string> units;
};

// The devices of the runs, in their order; devices without roofs are left out. A processor with
// another number of threads has roofs of its own.
class RoofCollection {
 public:
  RoofCollection(const Data& data, const Runs& runs);
  [[nodiscard]] const DeviceRoofs* find(const RunView& run) const;
  [[nodiscard]] const std::vector<DeviceRoofs>& devices() const { return devices_; }

 private:
  [[nodiscard]] std::string key_of(const RunView& run) const;

  std::vector<std::string> keys_;
  std::vector<DeviceRoofs> devices_;
};

// Makes the figure a roofline: logarithmic axes that hold all its points, which are in FLOP/byte
// and FLOP/s, and the roofs behind them; then scales FLOP/s for reading. Slopes end, and flat roofs
// begin, where they meet the highest and the fastest of the others: at their ridges.
void draw_roofs(Figure& figure, const std::vector<DeviceRoofs>& devices);

}  // namespace ridgeline::report
