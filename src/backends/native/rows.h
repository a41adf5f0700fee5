#pragma once

// The rows that each file of the native backend exports.

#include <cstdint>
#include <span>

#include "plan/kernel.h"

namespace ridgeline::native {

// Convolutions: forward, alone or with bias and activation, and both gradients.
// docs/kernels/native-convolution.md tells how they came to be fast.
[[nodiscard]] std::span<const KernelRow> conv_rows();

// Fully connected layers: the training step of a whole small network first, then forward, with bias
// and activation or alone, and both gradients.
[[nodiscard]] std::span<const KernelRow> linear_rows();

// Batch normalisation, forward: statistics, running statistics, and apply, alone and as
// bn_apply [+ add] [+ activation].
[[nodiscard]] std::span<const KernelRow> batch_norm_rows();

// Batch normalisation, backward: the two ops alone, and both in one kernel together with what
// makes their gradient: [add +] [activation_backward +] bn_backward_reduce + bn_backward_apply.
[[nodiscard]] std::span<const KernelRow> batch_norm_backward_rows();

// Max and average pooling over nhwc images.
[[nodiscard]] std::span<const KernelRow> pool_rows();

// The gradient of pooling, alone and as pool_backward + activation_backward [+ bias_backward],
// which in a network of convolution, bias, activation and pool makes one pass of three.
[[nodiscard]] std::span<const KernelRow> pool_backward_rows();

// The gradients of activation and bias, alone and joined with what surrounds them:
// [add +] activation_backward [+ bias_backward].
[[nodiscard]] std::span<const KernelRow> activation_backward_rows();

// Forward work in which every element is alone: bias, activation, add and add + activation.
[[nodiscard]] std::span<const KernelRow> elementwise_rows();

// Dropout, whose mask is a function of the logical index: the same in every layout.
[[nodiscard]] std::span<const KernelRow> dropout_rows();

// Factors: multiply in all its broadcasts, dropout of whole samples, and chains of
// [layer scale +] [dropout of samples +] add.
[[nodiscard]] std::span<const KernelRow> scale_rows();

// The gradient of a factor that served several elements.
[[nodiscard]] std::span<const KernelRow> multiply_backward_rows();

// Layer norm over the channels of each pixel, and its gradient.
[[nodiscard]] std::span<const KernelRow> layer_norm_rows();

// Group norm over groups of channels of each sample, and its gradient.
[[nodiscard]] std::span<const KernelRow> group_norm_rows();

// Kernels that only move elements: concat, slice, split and reshape, where the planner could not
// turn them into views.
[[nodiscard]] std::span<const KernelRow> concat_rows();

// From f32 to bf16 and back: the weights of a network all at once, and single values.
[[nodiscard]] std::span<const KernelRow> cast_rows();

// Channel shuffle, alone, behind the concatenation of two halves, and back to them.
[[nodiscard]] std::span<const KernelRow> shuffle_rows();

// Zeros around images and channels, or less of both.
[[nodiscard]] std::span<const KernelRow> pad_rows();

// Images of another size: nearest pixels, adaptive averages and the gradients of both.
[[nodiscard]] std::span<const KernelRow> resample_rows();

// Softmax cross-entropy, its gradient and the running metrics; together they are one kernel.
[[nodiscard]] std::span<const KernelRow> loss_rows();

// u8 pixels to floats, channels innermost, some samples mirrored.
[[nodiscard]] std::span<const KernelRow> normalize_rows();

// All gradients of a step together: accumulated over several passes, and clipped by their norm.
[[nodiscard]] std::span<const KernelRow> gradient_rows();

// SGD and Adam: all updates of a step with the same settings as one kernel, and each alone.
[[nodiscard]] std::span<const KernelRow> optimizer_rows();

// Throws when a label is not one of the classes; threads could not.
void check_labels(std::span<const std::int32_t> labels, std::int64_t classes);

}  // namespace ridgeline::native
