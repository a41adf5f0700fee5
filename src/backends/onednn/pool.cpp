// Pooling. The library's workspace for maxima is our positions value: u8 or i32, in dst's layout,
// the place in the window counted row by row, the first one of equals.

#include <algorithm>

#include "backends/onednn/common.h"
#include "backends/onednn/rows.h"

namespace ridgeline::onednn {
namespace {

using dnnl::pooling_backward;
using dnnl::pooling_forward;

struct Windows {
  dnnl::algorithm algorithm{};
  Dims stride, kernel, pad_begin, pad_end;
};

std::int64_t overhang(std::int64_t src, std::int64_t dst, std::int64_t kernel, std::int64_t stride,
                      std::int64_t pad_begin) {
  return (dst - 1) * stride + kernel - src - pad_begin;
}

Windows windows_of(const PoolAttributes& a, const Shape& src, const Shape& dst) {
  Windows w{.stride = {a.stride_h, a.stride_w},
            .kernel = {a.kernel_h, a.kernel_w},
            .pad_begin = {a.pad_top, a.pad_left},
            .pad_end = {a.pad_bottom, a.pad_right}};
  if (a.kind == PoolKind::max) {
    w.algorithm = dnnl::algorithm::pooling_max;
  } else if (a.count_include_pad) {
    w.algorithm = dnnl::algorithm::pooling_avg_include_padding;
  } else {
    w.algorithm = dnnl::algorithm::pooling_avg_exclude_padding;
  }
  if (a.ceil_mode) {
    w.pad_end = {std::max(a.pad_bottom,
                          overhang(src.height(), dst.height(), a.kernel_h, a.stride_h, a.pad_top)),
                 std::max(a.pad_right,
                          overhang(src.width(), dst.width(), a.kernel_w, a.stride_w, a.pad_left))};
  }
  return w;
}

const PoolAttributes& pool_of(const Problem& problem) {
  return std::get<PoolAttributes>(problem.node().attributes);
}

// What the library cannot express, given the shapes of a forward pool.
std::string refuse_windows(const PoolAttributes& a, const Shape& src, const Shape& dst) {
  if (a.kind == PoolKind::adaptive_average) return "oneDNN's windows all have one size";
  if (a.dilation_h != 1 || a.dilation_w != 1) {
    return "oneDNN pools dilated windows only on its reference path";
  }
  const Windows w = windows_of(a, src, dst);
  if (a.kind == PoolKind::average && a.count_include_pad &&
      (w.pad_end[0] > a.pad_bottom || w.pad_end[1] > a.pad_right)) {
    return "oneDNN would count what ceil_mode adds beyond the padding";
  }
  return {};
}

pooling_forward::primitive_desc forward_desc(const PoolAttributes& a, const TensorSpec& src,
                                             const TensorSpec& dst, dnnl::prop_kind purpose,
                                             Tag tag) {
  const Windows w = windows_of(a, src.shape, dst.shape);
  return forward_maker<pooling_forward>(user_scratchpad(), purpose, w.algorithm, describe(src, tag),
                                        describe(dst, tag), w.stride, windows(w.kernel),
                                        w.pad_begin, w.pad_end)();
}

pooling_forward::primitive_desc forward_desc(const Problem& problem) {
  const std::vector<ValueId>& outputs = problem.node().outputs;
  const bool positions_read = outputs.size() > 1 && is_read(problem, outputs[1]);
  const auto purpose =
      positions_read ? dnnl::prop_kind::forward_training : dnnl::prop_kind::forward_inference;
  return in_image_format(problem.input(0).shape, [&](Tag tag) {
    return forward_desc(pool_of(problem), problem.input(0), problem.output(0), purpose, tag);
  });
}

// The forward descriptor that a backward one takes as a hint; it knows the positions' format.
pooling_forward::primitive_desc hint_for(const Problem& problem, Tag tag) {
  return forward_desc(pool_of(problem), problem.output(0), problem.input(0),
                      dnnl::prop_kind::forward_training, tag);
}

pooling_backward::primitive_desc backward_desc(const Problem& problem, Tag tag) {
  const TensorSpec& diff_src = problem.output(0);
  const TensorSpec& diff_dst = problem.input(0);
  const Windows w = windows_of(pool_of(problem), diff_src.shape, diff_dst.shape);
  return backward_maker<pooling_backward>(user_scratchpad(), hint_for(problem, tag), w.algorithm,
                                          describe(diff_src, tag), describe(diff_dst, tag),
                                          w.stride, windows(w.kernel), w.pad_begin, w.pad_end)();
}

pooling_backward::primitive_desc backward_desc(const Problem& problem) {
  return in_image_format(problem.input(0).shape,
                         [&](Tag tag) { return backward_desc(problem, tag); });
}

std::string check_forward(const Problem& problem) {
  std::string reason =
      refuse_windows(pool_of(problem), problem.input(0).shape, problem.output(0).shape);
  if (!reason.empty()) return reason;
  return refuse(problem, [&] { return forward_desc(problem); });
}

std::string check_backward(const Problem& problem) {
  std::string reason =
      refuse_windows(pool_of(problem), problem.output(0).shape, problem.input(0).shape);
  if (!reason.empty()) return reason;
  return refuse(problem, [&] { return backward_desc(problem); });
}

std::unique_ptr<Kernel> make_forward(const Problem& problem, std::span<const Layout> layouts) {
  return checked("pool", [&] {
    const std::vector<ValueId>& outputs = problem.node().outputs;
    const auto desc = forward_desc(problem);
    auto kernel = std::make_unique<PrimitiveKernel>(problem, desc);
    kernel->bind_input(DNNL_ARG_SRC, 0, desc.src_desc(), layouts[0]);
    kernel->bind_output(DNNL_ARG_DST, problem.output_index(outputs[0]), desc.dst_desc(),
                        Layout::nhwc());
    if (outputs.size() > 1 && is_read(problem, outputs[1])) {
      kernel->bind_output(DNNL_ARG_WORKSPACE, problem.output_index(outputs[1]),
                          desc.workspace_desc(), Layout::nhwc());
    }
    return kernel;
  });
}

std::unique_ptr<Kernel> make_backward(const Problem& problem, std::span<const Layout> layouts) {
  return checked("pool_backward", [&] {
    const std::vector<ValueId>& inputs = problem.node().inputs;
    const auto desc = backward_desc(problem);
    auto kernel = std::make_unique<PrimitiveKernel>(problem, desc);
    kernel->bind_input(DNNL_ARG_DIFF_DST, 0, desc.diff_dst_desc(), layouts[0]);
    if (inputs.size() > 1) {
      const std::size_t positions = problem.input_index(inputs[1]);
      kernel->bind_input(DNNL_ARG_WORKSPACE, positions, desc.workspace_desc(), layouts[positions]);
    }
    kernel->bind_output(DNNL_ARG_DIFF_SRC, 0, desc.diff_src_desc(), Layout::nhwc());
    return kernel;
  });
}

}  // namespace

std::span<const KernelRow> pool_rows() {
  static constexpr KernelRow kRows[] = {
      {"pool", match_one<OpKind::pool>, check_forward, make_forward},
      {"pool_backward", match_one<OpKind::pool_backward>, check_backward, make_backward},
  };
  return kRows;
}

}  // namespace ridgeline::onednn
