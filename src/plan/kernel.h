#pragma once

// The contract between the plan and the backends. A backend exports one table of rows; a row covers
// a pattern of one or more nodes; selection tiles the graph with rows. A row lives in three steps:
// match (is the pattern here?), check (can you compute this problem, or why not?), make (a kernel
// with its layouts, workspace and traits). Running a kernel allocates nothing.

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/precision.h"
#include "devices/kernel.h"
#include "graph/graph.h"

namespace ridgeline {

class Device;

// What a kernel has to compute: the nodes of a pattern and the values at its boundary.
// `inputs` are the values used but not produced inside, in order of first use, each once.
// `outputs` are all outputs of the last node and every other produced value that is used outside
// (or marked as output), in order of production. Kernel arguments come in these orders.
struct Problem {
  const Graph* graph = nullptr;
  std::vector<NodeId> nodes;
  std::vector<ValueId> inputs, outputs;
  bool measure = true;  // as in PlanOptions

  [[nodiscard]] const Node& node(std::size_t index = 0) const { return graph->node(nodes[index]); }
  [[nodiscard]] const TensorSpec& input(std::size_t index) const {
    return graph->value(inputs[index]).spec;
  }
  [[nodiscard]] const TensorSpec& output(std::size_t index) const {
    return graph->value(outputs[index]).spec;
  }
  // The position of a value among the inputs or outputs. REQUIRES: it is there.
  [[nodiscard]] std::size_t input_index(ValueId value) const;
  [[nodiscard]] std::size_t output_index(ValueId value) const;
  // The same for a value that may lie inside the pattern; nothing then.
  [[nodiscard]] std::optional<std::size_t> find_output(ValueId value) const;
  // "conv2d+bias+activation(relu) 512x1x28x28,8x1x3x3,8 -> 512x8x26x26 f32": the key under which
  // choices are cached.
  [[nodiscard]] std::string text() const;
};

[[nodiscard]] Problem make_problem(const Graph& graph, std::vector<NodeId> nodes,
                                   bool measure = true);

struct KernelRow {
  std::string_view name;  // unique in its backend: "conv2d_bias_act"
  // The nodes of the pattern whose first node is `first`, in order; nothing when it is not here.
  std::vector<NodeId> (*match)(const Graph& graph, NodeId first);
  // Empty when the kernel can be made, else the reason why not. Cheap.
  std::string (*check)(const Problem& problem);
  // `layouts`: how each input lies now. The kernel may ask for others; reorders are then inserted.
  std::unique_ptr<Kernel> (*make)(const Problem& problem, std::span<const Layout> layouts);
};

// A kernel provider on a kind of device.
struct Backend {
  std::string_view name;
  std::string_view device;               // kind: "cpu", "cuda"
  std::string (*unavailable)();          // empty when it can be used here, else the reason
  std::string (*version)();              // part of the key of cached choices
  std::span<const KernelRow> (*rows)();  // larger patterns first
  // A kernel that copies a value from one layout to another; null when it cannot.
  std::unique_ptr<Kernel> (*make_reorder)(const TensorSpec& spec, const Layout& from,
                                          const Layout& to);
  // Its optimizers read gradients in whatever layout they were computed: none is reordered.
  bool gradients_in_any_layout = false;
  // Whose rows serve where it has none; null: it has all, or does without.
  const Backend* completed_by = nullptr;
  // The plain loops that others are compared with: they fuse nothing, and `auto` leaves them out.
  bool plain = false;
  bool measures = false;     // times variants of its own while a plan is made
  bool own_threads = false;  // its kernels run threads that a profile cannot watch
  // FLOP/s of large products of random matrices, one for each repeat: the roof of its library;
  // null: it has none.
  std::vector<double> (*product_rates)(Device& device, Precision precision, int repeats,
                                       double repeat_seconds) = nullptr;
  // On its device, where no backend is named.
  enum class Default : std::uint8_t { no, alone, in_auto } by_default = Default::no;
  // Of the device's arithmetic, as networks usually reach it: for estimates before anything ran.
  double usual_share = 0.3;
};

// Match function for the many rows that cover one node of one kind.
template <OpKind kind>
std::vector<NodeId> match_one(const Graph& graph, NodeId first) {
  if (graph.node(first).kind != kind) return {};
  return {first};
}

// Sets the layouts of every boundary value: `image` for rank 4, plain for the others.
void set_layouts(Kernel& kernel, const Problem& problem, const Layout& image);

// The only user of a value, or kNoNode when it has none or several or must be kept: a value that
// may disappear inside a pattern.
[[nodiscard]] NodeId sole_user(const Graph& graph, ValueId value);

}  // namespace ridgeline
