#pragma once

// What a device runs: a kernel with its arguments, ready made. Who makes it, and for what, is told
// in plan/kernel.h.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/layout.h"
#include "base/tensor.h"

namespace ridgeline {

struct StepState;

// What a kernel can do beyond computing.
struct Traits {
  bool deterministic = true;  // the same inputs give the same bits, every time
  bool capturable = true;     // may run inside a captured graph
  bool slices = false;        // reads and writes tensors with gaps between rows (plain, nhwc)
  bool in_place = false;      // the output that is like input 0 may lie there
  bool beside = false;        // mostly waits for others: may run while later steps compute
};

// Outputs that are not read are null. A node always has one output that is read, and a max pool its
// maxima: the positions are never read alone.
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

}  // namespace ridgeline
