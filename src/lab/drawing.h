#pragma once

// Draws the network of a plan for Graphviz.

#include <string>

#include "plan/plan.h"

namespace ridgeline {

enum class DrawingView : std::uint8_t {
  blocks,  // the forward pass: a box for a layer with its norm and activation, blocks framed
  full,    // every op of the training step
};

// The text of a .dot file: shapes on the edges, parameters and MACs in the boxes.
[[nodiscard]] std::string drawing_of(const Plan& plan, const std::string& title, DrawingView view);

}  // namespace ridgeline
