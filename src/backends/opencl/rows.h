#pragma once

// The rows that each file of the opencl backend exports.

#include <span>

#include "plan/kernel.h"

namespace ridgeline::opencl {

std::span<const KernelRow> batch_norm_rows();
std::span<const KernelRow> layer_norm_rows();
std::span<const KernelRow> pool_rows();
std::span<const KernelRow> elementwise_rows();  // add, activation, bias, dropout, multiply
std::span<const KernelRow>
move_rows();  // concat, slice, split, shuffle, pad, resize, cast, normalize
std::span<const KernelRow> loss_rows();
std::span<const KernelRow> gradient_rows();   // accumulate, clip_norm
std::span<const KernelRow> optimizer_rows();  // sgd, adam, overflow_guard

// Copies between plain and nhwc, slices included; null when a layout is a provider's own.
std::unique_ptr<Kernel> make_reorder(const TensorSpec& spec, const Layout& from, const Layout& to);

}  // namespace ridgeline::opencl
