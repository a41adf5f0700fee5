#include <dnnl.h>
#include <fmt/core.h>

#include <vector>

#include "backends/onednn/rows.h"
#include "backends/registry.h"

namespace ridgeline {
namespace {

std::string unavailable() { return {}; }

std::string version() {
  const dnnl_version_t* v = dnnl_version();
  return fmt::format("{}.{}.{}", v->major, v->minor, v->patch);
}

std::span<const KernelRow> rows() {
  static const std::vector<KernelRow> all = [] {
    std::vector<KernelRow> list;
    for (const auto part : {onednn::conv_rows(), onednn::linear_rows(), onednn::pool_rows(),
                            onednn::norm_rows(), onednn::eltwise_rows(), onednn::join_rows()}) {
      list.insert(list.end(), part.begin(), part.end());
    }
    return list;
  }();
  return all;
}

}  // namespace

const Backend onednn_backend = {.name = "onednn",
                                .device = "cpu",
                                .unavailable = unavailable,
                                .version = version,
                                .rows = rows,
                                .make_reorder = onednn::make_reorder,
                                .completed_by = &native_backend,
                                .own_threads = true};

}  // namespace ridgeline
