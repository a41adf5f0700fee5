#include "ops/adaptive_pool.h"

#include "ops/op.h"
#include "ops/reference.h"

namespace ridgeline {
namespace {

double pixels_of(AdaptiveWindow rows, AdaptiveWindow columns) {
  return static_cast<double>(rows.size() * columns.size());
}

template <typename T>
void forward(const Tensor& src_tensor, const Tensor& dst_tensor) {
  const Elements<T> src(src_tensor), dst(dst_tensor);
  const Shape &from = src_tensor.shape(), &to = dst_tensor.shape();
  for_each_index(to, [&](auto n, auto c, auto oh, auto ow) {
    const AdaptiveWindow rows = adaptive_window(oh, from[2], to[2]);
    const AdaptiveWindow columns = adaptive_window(ow, from[3], to[3]);
    double sum = 0.0;
    for (std::int64_t h = rows.begin; h < rows.end; ++h) {
      for (std::int64_t w = columns.begin; w < columns.end; ++w) sum += src(n, c, h, w);
    }
    dst(n, c, oh, ow) = static_cast<T>(sum / pixels_of(rows, columns));
  });
}

template <typename T>
void backward(const Tensor& diff_dst_tensor, const Tensor& diff_src_tensor) {
  const Elements<T> diff_dst(diff_dst_tensor), diff_src(diff_src_tensor);
  const Shape &to = diff_dst_tensor.shape(), &from = diff_src_tensor.shape();
  for_each_index(from, [&](auto n, auto c, auto h, auto w) {
    const AdaptiveWindow over_rows = adaptive_windows_of(h, from[2], to[2]);
    const AdaptiveWindow over_columns = adaptive_windows_of(w, from[3], to[3]);
    double sum = 0.0;
    for (std::int64_t oh = over_rows.begin; oh < over_rows.end; ++oh) {
      for (std::int64_t ow = over_columns.begin; ow < over_columns.end; ++ow) {
        sum += diff_dst(n, c, oh, ow) /
               pixels_of(adaptive_window(oh, from[2], to[2]), adaptive_window(ow, from[3], to[3]));
      }
    }
    diff_src(n, c, h, w) = static_cast<T>(sum);
  });
}

}  // namespace

std::int64_t adaptive_taps(std::int64_t src, std::int64_t dst) {
  std::int64_t taps = 0;
  for (std::int64_t window = 0; window < dst; ++window) {
    taps += adaptive_window(window, src, dst).size();
  }
  return taps;
}

void adaptive_average(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype,
                  [&](auto type) { forward<decltype(type)>(call.inputs[0], call.outputs[0]); });
}

void adaptive_average_backward(const OpCall& call) {
  with_float_type(call.outputs[0].spec.dtype,
                  [&](auto type) { backward<decltype(type)>(call.inputs[0], call.outputs[0]); });
}

}  // namespace ridgeline
