#pragma once

// Runs that are equal in all but one thing: a field of their identity, or an option of the network.

#include <string>
#include <vector>

#include "report/exhibits/runs.h"

namespace ridgeline::report {

// What is varied.
struct SweepAxis {
  std::string name;        // "batch", "learning rate", "hidden"
  std::string_view field;  // of the identity; "settings" for an option
  std::string option;      // of the network; empty: the field itself
  FieldNames along;        // fields that may change with it: optimizers want their own rates

  // Empty: the run has no such thing.
  [[nodiscard]] std::string text(const RunView& run) const;
  [[nodiscard]] std::optional<double> number(const RunView& run) const;
  // The fields that its values tell.
  [[nodiscard]] FieldNames fields() const;
};

struct Sweep {
  SweepAxis axis;
  std::vector<Runs> series = {};  // runs of each differ along the axis alone
  bool numbers = false;           // every value is one, and runs are in their order

  // "hidden=64": options of the network beside the axis, where they differ among the runs.
  [[nodiscard]] std::string other_options(const RunView& run) const;
};

// Along each axis that some of the runs differ in: those that studies name first, then options of
// networks, then the rest. Several networks are a sweep where nothing else was varied. REQUIRES:
// chosen().
[[nodiscard]] std::vector<Sweep> sweeps_of(const Runs& runs);

}  // namespace ridgeline::report
