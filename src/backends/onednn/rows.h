#pragma once

// The rows of this backend, by the file that computes them.

#include <span>

#include "plan/kernel.h"

namespace ridgeline::onednn {

[[nodiscard]] std::span<const KernelRow> conv_rows();
[[nodiscard]] std::span<const KernelRow> linear_rows();
[[nodiscard]] std::span<const KernelRow> pool_rows();
[[nodiscard]] std::span<const KernelRow> norm_rows();
[[nodiscard]] std::span<const KernelRow> eltwise_rows();
[[nodiscard]] std::span<const KernelRow> join_rows();

[[nodiscard]] std::unique_ptr<Kernel> make_reorder(const TensorSpec& spec, const Layout& from,
                                                   const Layout& to);

}  // namespace ridgeline::onednn
