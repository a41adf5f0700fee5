#pragma once

// Ranks go on together, or none does.

#include <exception>
#include <optional>

#include "base/error.h"
#include "ranks/ranks.h"

namespace ridgeline {

// What one of the ranks was hindered by, as all of them are told; nothing: none was. Called by all
// ranks, each with its own trouble or null.
[[nodiscard]] std::optional<Error> trouble_of_any(Ranks& ranks, const std::exception* own);

// Calls body() on every rank; where one of them throws, all throw the same. REQUIRES: body()
// exchanges nothing that it could leave the others waiting for.
template <typename Body>
void together(Ranks& ranks, Body&& body) {
  std::optional<Error> trouble;
  try {
    body();
  } catch (const std::exception& error) {
    trouble = trouble_of_any(ranks, &error);
    ranks.end_together();
    throw Error(*trouble);
  }
  trouble = trouble_of_any(ranks, nullptr);
  if (!trouble) return;
  ranks.end_together();
  throw Error(*trouble);
}

}  // namespace ridgeline
