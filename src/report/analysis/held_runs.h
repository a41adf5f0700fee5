#pragma once

// The store's runs, each left out and predicted from the others (predict/check.h): how far
// predictions that stand on this store can be believed.

#include <string>
#include <vector>

#include "predict/check.h"
#include "report/data.h"

namespace ridgeline::report {

// Runs that a group (a backend, and what was left out) needs before its errors are told.
inline constexpr std::size_t kFewestHeld = 5;

class HeldRuns {
 public:
  explicit HeldRuns(const Store& store);
  HeldRuns(const HeldRuns&) = delete;
  HeldRuns& operator=(const HeldRuns&) = delete;

  // Those of the given runs, of groups that are large enough.
  [[nodiscard]] std::vector<predict::HeldBack> of(const Runs& runs) const;
  [[nodiscard]] std::size_t usable() const { return seen_.size(); }

 private:
  std::vector<predict::Observation> seen_;  // that `held_` points to
  std::vector<predict::HeldBack> held_;
};

// "native on cpu"
[[nodiscard]] std::string backend_words(const predict::HeldBack& held);

}  // namespace ridgeline::report
