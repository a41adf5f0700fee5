#pragma once

// What would be gained: for each row of a table the time that its roofs would allow, by the time
// that is lost against it.

#include <string>
#include <vector>

#include "measure/profile/tables.h"

namespace ridgeline {

struct Gain {
  std::string name, bound;
  double seconds = 0.0;        // now
  double least_seconds = 0.0;  // at the roofs
  double lost_seconds = 0.0;   // the difference; 0 at the roof, and above it
  double step_seconds = 0.0;   // the iteration's time if this row alone stood at its roof
};

// Most lost first; rows without a roof are left out.
[[nodiscard]] std::vector<Gain> gains_of(const ProfileTable& table);

}  // namespace ridgeline
