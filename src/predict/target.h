#pragma once

// The device that a prediction is for, as its roofs: from a data sheet, from a file of the user, or
// from the ceilings that a store holds of a machine.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/roofline/roofs.h"
#include "measure/ceilings/hardware.h"
#include "predict/work.h"
#include "store/store.h"

namespace ridgeline::predict {

struct Target {
  std::string name;
  Family family = Family::gpu;
  // One memory level: data sheets tell no others. Efficiencies are shares of these.
  Roofs roofs;
  double cache_bytes = 0.0;  // L2; 0: not known
  std::optional<double> memory_bytes, watts;
  std::string source;  // "data sheet: …", "measured ceilings of …"
};

// Letters and digits alone, in lower case: names as people write them.
[[nodiscard]] std::string letters_of(std::string_view text);

[[nodiscard]] Target target_of(const KnownGpu& gpu);
// Nothing for a design of which no product is told.
[[nodiscard]] std::optional<Target> target_of(const KnownCpu& cpu);
// A device of a stored environment: the data sheet's where there is one, because efficiencies are
// carried from device to device by data sheets; else by its measured ceilings, for so many threads
// (0: all of it). Nothing where neither is known.
[[nodiscard]] std::optional<Target> stored_target(const EnvironmentRecord& environment,
                                                  const std::vector<Ceiling>& ceilings,
                                                  const std::string& device, int threads,
                                                  const KnownHardware& known);

// Finds targets by what people write.
class Targets {
 public:
  // The data sheets, and the machines of a store where one is given.
  Targets(KnownHardware known, const Store* store);
  // Devices of a file of the form of hardware/*.toml come first.
  void add_file(const std::string& path);

  // All that a name may mean: "A100" is four. A path to a file means all devices of it. Throws
  // bad_input with the nearest names where it is none.
  [[nodiscard]] std::vector<Target> find(const std::string& written);
  [[nodiscard]] const KnownHardware& known() const { return known_; }

 private:
  [[nodiscard]] std::vector<std::string> names() const;

  KnownHardware known_;
  std::vector<Target> machines_;  // of the store
};

}  // namespace ridgeline::predict
