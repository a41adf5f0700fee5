// The native backend: our own kernels for the CPU, vectorised with Highway for the instruction set
// that is found at run time.

#include <fmt/core.h>

#include <cctype>

#include "backends/native/reorder.h"
#include "backends/native/rows.h"
#include "backends/registry.h"
#include "base/bf16_unit.h"
#include "base/simd_targets.h"
#include "build_info.h"
// After targets.h, which says what is compiled.
#include <hwy/targets.h>

namespace ridgeline {
namespace native {
namespace {

std::string never_unavailable() { return {}; }

// "ridgeline 0.1.0 avx3 amx": what kernels are compiled for, and the unit for bf16
std::string version() {
  // Better instruction sets have lower bits.
  const std::int64_t usable = hwy::SupportedTargets() & HWY_TARGETS;
  std::string target = hwy::TargetName(usable & -usable);
  for (char& c : target) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  if (bf16_unit() == Bf16Unit::amx) target += " amx";
  if (bf16_unit() == Bf16Unit::avx512) target += " bf16";
  return fmt::format("ridgeline {} {}", build_info::version, target);
}

// Rows whose patterns begin with the same op come with the larger pattern first: an add may begin a
// gradient of batch norm, of an activation, or stand alone.
std::vector<KernelRow> join_rows() {
  std::vector<KernelRow> rows;
  for (const std::span<const KernelRow> some : {conv_rows(),
                                                linear_rows(),
                                                batch_norm_backward_rows(),
                                                batch_norm_rows(),
                                                layer_norm_rows(),
                                                group_norm_rows(),
                                                pool_backward_rows(),
                                                activation_backward_rows(),
                                                pool_rows(),
                                                elementwise_rows(),
                                                scale_rows(),
                                                multiply_backward_rows(),
                                                dropout_rows(),
                                                cast_rows(),
                                                shuffle_rows(),
                                                concat_rows(),
                                                pad_rows(),
                                                resample_rows(),
                                                loss_rows(),
                                                normalize_rows(),
                                                gradient_rows(),
                                                optimizer_rows()}) {
    rows.insert(rows.end(), some.begin(), some.end());
  }
  return rows;
}

std::span<const KernelRow> all_rows() {
  static const std::vector<KernelRow> rows = join_rows();
  return rows;
}

}  // namespace
}  // namespace native

const Backend native_backend = {.name = "native",
                                .device = "cpu",
                                .unavailable = native::never_unavailable,
                                .version = native::version,
                                .rows = native::all_rows,
                                .make_reorder = native::make_reorder,
                                .by_default = Backend::Default::alone};

}  // namespace ridgeline
