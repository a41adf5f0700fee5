#pragma once

// The Plan: one training or evaluation step as a list of kernels with their buffers, fixed before
// the first step runs. It is the single source of truth: profiles, memory ledgers, rooflines and
// FLOP tables are views of a Plan and of measured times.

#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "plan/kernel.h"

namespace ridgeline {

using FormId = std::int32_t;
inline constexpr FormId kNoForm = -1;

// A graph value in one layout at its place. A value has several forms when kernels want it in
// different layouts. A form lies either in an arena or within another form (a view).
struct Form {
  ValueId value = kNoValue;
  Layout layout;
  Strides strides{};
  std::int64_t bytes = 0;
  FormId view_of = kNoForm;
  std::int64_t view_offset = 0;  // bytes from the start of view_of
  // Where it lies in the scratch arena; persistent values lie where the session puts them.
  std::int64_t offset = 0;
  // Steps between which its memory is in use; only for forms that are no views.
  std::int32_t first_step = -1, last_step = -1;
};

struct Step {
  std::vector<NodeId> nodes;  // the ops it covers; none for a reorder
  std::string layer;          // of the first op, or of the op that a reorder serves
  Phase phase = Phase::forward;
  // Of a step that runs beside others: the first step that must wait for it, or the number of
  // steps; 0: it runs alone.
  std::int32_t needed_by = 0;
  std::string provider;  // the backend's name
  std::string row;       // the name of its kernel row, or "reorder"
  std::unique_ptr<Kernel> kernel;
  std::vector<FormId> inputs, outputs;  // kNoForm: an output that is not read
  std::int64_t workspace_offset = 0;
  Cost work;  // the algorithmic work of the ops it covers
  // What it executes: bytes of the values at its own boundary, without a layout's padding, and
  // FLOPs by the kernel's factor.
  Cost boundary;

  [[nodiscard]] bool is_reorder() const { return nodes.empty(); }
  [[nodiscard]] bool runs_beside() const { return needed_by > 0; }
  [[nodiscard]] std::string kernel_name() const;  // "onednn:conv2d/jit:avx2"
};

// Why a kernel row did not get a node.
struct Refusal {
  NodeId node = kNoNode;
  std::string row;  // "onednn:conv2d"
  std::string reason;
};

// Bytes by owner. Persistent values are counted once, whatever the number of their versions.
struct MemoryUse {
  std::array<std::int64_t, kRoles> by_role{};
  std::int64_t scratch_peak = 0;  // what the scratch arena needs

  [[nodiscard]] std::int64_t of(Role role) const { return by_role[static_cast<std::size_t>(role)]; }
};

struct PlanOptions {
  std::vector<const Backend*> providers;  // first choice first
  // For each node the provider to try before the others; empty, or null entries: no preference.
  std::vector<const Backend*> preferred;
  // Nodes that get no row of a pass; empty: none.
  std::vector<bool> without_passes = {};
  std::vector<std::string> disabled_passes;  // of kPasses
  bool deterministic = false;                // only kernels with that trait
  // Weights stay as they are from run to run: what only casts or reorders them is done once.
  // REQUIRES: no step updates them.
  bool constant_weights = false;
  // Whether a library may run its kernels to find the fastest. Without it, it takes its own first
  // proposal: for plans that are only looked at, or that run too seldom to be worth much thought.
  bool measure = true;
};

// Passes that --no-pass can switch off, to find out which one makes a result wrong.
struct PassInfo {
  std::string_view name, meaning;
};
inline constexpr std::array<PassInfo, 6> kPasses = {{
    {"fusion", "kernels that cover several ops"},
    {"winograd", "3 x 3 convolutions with fewer multiplications and larger errors"},
    {"slices", "concatenation and its gradient without copies"},
    {"constants", "weights of inference cast and reordered once, not in every run"},
    {"inplace", "outputs overwrite inputs that are no longer needed"},
    {"overlap", "ranks exchange gradients while the backward pass goes on"},
}};
// The pass that a kernel row belongs to: its name begins with the pass's
// ("winograd_backward_data"). Another row of its backend computes the same where it is left out.
// Empty: it belongs to none.
[[nodiscard]] std::string_view pass_of(std::string_view row);
[[nodiscard]] bool pass_enabled(const PlanOptions& options, std::string_view pass);

class Plan {
 public:
  std::shared_ptr<const Graph> graph;
  std::vector<Form> forms;
  std::vector<Step> steps;
  // Casts and reorders of constant weights, in order: run once after weights were written. Their
  // outputs keep their places in scratch through all steps.
  std::vector<Step> setup;
  std::vector<Refusal> refusals;
  std::vector<const Backend*> providers;  // that it was made from
  std::int64_t scratch_bytes = 0;

  // The form that a view finally lies in, and the offset within it.
  struct Root {
    FormId form;
    std::int64_t offset;
  };
  [[nodiscard]] Root root(FormId id) const;
  // Whether a form that is no view lies in the session's state arena rather than in scratch.
  [[nodiscard]] bool in_state(FormId id) const;
  [[nodiscard]] const Form& form(FormId id) const { return forms[static_cast<std::size_t>(id)]; }
  // The plain form of a value, or any form of it; kNoForm when the plan computes it nowhere.
  [[nodiscard]] FormId form_of(ValueId value) const;
  [[nodiscard]] MemoryUse memory() const;
  [[nodiscard]] Cost work() const;

  // A table of the steps, the memory and the totals; with `explain`, why rows were refused.
  [[nodiscard]] std::string text(bool explain) const;
};

// Selects kernels, settles layouts, plans memory. Throws a failure naming the op and the reasons
// when no provider can compute a node.
[[nodiscard]] Plan make_plan(Graph graph, const PlanOptions& options);

}  // namespace ridgeline
