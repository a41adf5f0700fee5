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

#include "graph/graph.h"

namespace ridgeline {

// What a kernel has to compute: the nodes of a pattern and the values at its boundary.
// `inputs` are the values used but not produced inside, in order of first use, each once.
// `outputs` are all outputs of the last node and every other produced value that is used outside
// (or marked as output), in order of production. Kernel arguments come in these orders.
struct Problem {
  const Graph* graph = nullptr;
  std::vector<NodeId> nodes;
  std::vector<ValueId> inputs, outputs;

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

[[nodiscard]] Problem make_problem(const Graph& graph, std::vector<NodeId> nodes);

// What a kernel can do beyond computing.
struct Traits {
  bool deterministic = true;  // the same inputs give the same bits, every time
  bool capturable = true;     // may run inside a captured graph
  bool slices = false;        // reads and writes tensors with gaps between rows (plain, nhwc)
  bool in_place = false;      // output 0 may lie where input 0 lies
};

// Outputs that nobody reads are null. A node always has one output that is read, and a max pool its
// maxima: nobody asks for the positions alone.
struct KernelArgs {
  std::span<const Tensor> inputs, outputs;
  std::byte* workspace = nullptr;  // 64-byte aligned, contents undefined
  StepState* state = nullptr;      // in the device's memory; only overflow_guard writes to it
  void* queue = nullptr;           // where a device queues its work: a cudaStream_t
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  virtual void run(const KernelArgs& args) const = 0;

  // Filled in by make; fixed afterwards.
  std::vector<Layout> input_layouts, output_layouts;  // one for each boundary value
  std::size_t workspace_bytes = 0;
  Traits traits;
  std::string implementation;  // the provider's own name for what runs, if it has one
  // The compute unit of its products where the types of its values do not tell: "tensor fp16" of a
  // kernel that puts products of f32 together from pieces of half the width.
  std::string_view unit = {};
  double flop_factor = 1.0;  // executed FLOPs ÷ algorithmic FLOPs (Winograd < 1)
};

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
