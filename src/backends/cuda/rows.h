#pragma once

// The rows that each file of the cuda backend exports.

#include <span>

#include "plan/kernel.h"

namespace ridgeline::cuda {

std::span<const KernelRow> conv_rows();             // conv2d and linear with their gradients
std::span<const KernelRow> hopper_gradient_rows();  // data gradients with those of a batch norm
std::span<const KernelRow> depthwise_rows();        // convolutions with one channel to a group
std::span<const KernelRow> batch_norm_rows();       // forward
std::span<const KernelRow> batch_norm_backward_rows();
std::span<const KernelRow> layer_norm_rows();
std::span<const KernelRow> elementwise_rows();  // add, activation, bias, cast, dropout
std::span<const KernelRow> activation_backward_rows();
std::span<const KernelRow> block_end_rows();  // gradients of layer scale and dropout of samples
std::span<const KernelRow> multiply_rows();
std::span<const KernelRow> pool_rows();
std::span<const KernelRow> copy_rows();  // concat, slice, split
std::span<const KernelRow> move_rows();  // shuffle, pad, resize
std::span<const KernelRow> normalize_rows();
std::span<const KernelRow> loss_rows();
std::span<const KernelRow> optimizer_rows();  // sgd, adam, overflow_guard
std::span<const KernelRow> gradient_rows();   // accumulate, clip_norm
std::span<const KernelRow> mlp_step_rows();   // whole small networks
std::span<const KernelRow> small_cnn_rows();

// Copies between plain and nhwc, slices included; null when a layout is a provider's own.
std::unique_ptr<Kernel> make_reorder(const TensorSpec& spec, const Layout& from, const Layout& to);

}  // namespace ridgeline::cuda
