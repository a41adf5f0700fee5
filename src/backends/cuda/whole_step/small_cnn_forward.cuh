#pragma once

// The forward half of a small convolutional network's step, on a few samples in shared memory. All
// functions are for a whole block of kCnnThreads; none synchronises it.

#include "backends/cuda/sums/partial_sums.cuh"
#include "backends/cuda/training/softmax_row.cuh"
#include "backends/cuda/whole_step/small_cnn_kernels.h"
#include "backends/cuda/whole_step/step_primitives.cuh"

namespace ridgeline::cuda {

// The block's shared memory.
struct CnnShared {
  std::byte* base;

  [[nodiscard]] __device__ __forceinline__ float* floats(int place) const {
    return reinterpret_cast<float*>(base + place);
  }
  [[nodiscard]] __device__ __forceinline__ std::uint8_t* bytes(int place) const {
    return reinterpret_cast<std::uint8_t*>(base + place);
  }
};

__device__ __forceinline__ int thread_index() { return static_cast<int>(threadIdx.x); }

// sums[2 u + v][j] += the convolution at pixel (u, v) of a 2 x 2 tile and filter j of four. `src`
// is the tile's corner in the first channel, at an even column of planes with an even stride;
// `weights` the four filters' of the first tap. A window of (kernel + 1)² pixels serves 16 sums.
template <int kKernel>
__device__ __forceinline__ void convolve_tile(const float* src, int stride, int plane, int channels,
                                              const float* weights, int filters,
                                              float (&sums)[4][4]) {
  constexpr int kWindow = kKernel + 1;
  for (int c = 0; c < channels; ++c) {
    float window[kWindow][kWindow];
#pragma unroll
    for (int h = 0; h < kWindow; ++h) {
#pragma unroll
      for (int w = 0; w < kWindow; w += 2) {
        const float2 pair = *reinterpret_cast<const float2*>(src + h * stride + w);
        window[h][w] = pair.x;
        window[h][w + 1] = pair.y;
      }
    }
#pragma unroll
    for (int tap = 0; tap < kKernel * kKernel; ++tap) {
      const float4 four = *reinterpret_cast<const float4*>(weights + tap * filters);
      const float weight[4] = {four.x, four.y, four.z, four.w};
#pragma unroll
      for (int pixel = 0; pixel < 4; ++pixel) {
        const float value = window[tap / kKernel + pixel / 2][tap % kKernel + pixel % 2];
#pragma unroll
        for (int j = 0; j < 4; ++j) sums[pixel][j] = fmaf(value, weight[j], sums[pixel][j]);
      }
    }
    src += plane;
    weights += kKernel * kKernel * filters;
  }
}

// The largest of a tile's four sums with its position; the first of equals, and a NaN wins. ReLU
// and the bias, which come before the pooling in the graph, keep the order and may follow it.
struct Largest {
  float value;
  int position;

  __device__ __forceinline__ Largest(const float (&sums)[4][4], int j)
      : value(sums[0][j]), position(0) {
#pragma unroll
    for (int i = 1; i < 4; ++i) {
      if (sums[i][j] > value || isnan(sums[i][j])) {
        value = sums[i][j];
        position = i;
      }
    }
  }
};

__device__ __forceinline__ float relu(float x) { return x < 0.0F ? 0.0F : x; }

// A float of shared memory that is copied from `from`, or zero where that is null.
__device__ __forceinline__ void fetch_float(float* to, const float* from) {
  if (from != nullptr) {
    copy_float_async(to, from);
  } else {
    *to = 0.0F;
  }
}

// Starts copying the parameters but for the dense layer's weights. The convolutions' weights are
// turned so that four filters lie together, and padded with zeros to fours.
__device__ inline void fetch_parameters(const SmallCnn& net, const CnnShared& shared) {
  const CnnGeometry& g = net.g;
  float* const weights1 = shared.floats(net.at.weights1);
  float* const weights2 = shared.floats(net.at.weights2);
#pragma unroll 1
  for (int i = thread_index(); i < g.taps * g.padded1; i += kCnnThreads) {
    const int tap = i / g.padded1, filter = i % g.padded1;
    fetch_float(weights1 + i, filter < g.filters1 ? net.weights1 + filter * g.taps + tap : nullptr);
  }
#pragma unroll 1
  for (int i = thread_index(); i < g.filters1 * g.taps * g.padded2; i += kCnnThreads) {
    const int depth = i / g.padded2, filter = i % g.padded2;
    fetch_float(weights2 + i, filter < g.filters2
                                  ? net.weights2 + filter * g.filters1 * g.taps + depth
                                  : nullptr);
  }
  const auto fetch = [&](int place, const float* from, int count, int padded) {
#pragma unroll 1
    for (int i = thread_index(); i < padded; i += kCnnThreads) {
      fetch_float(shared.floats(place) + i, i < count ? from + i : nullptr);
    }
  };
  fetch(net.at.bias1, net.bias1, g.filters1, g.padded1);
  fetch(net.at.bias2, net.bias2, g.filters2, g.padded2);
  fetch(net.at.dense_bias, net.dense_bias, g.hidden, g.hidden);
  fetch(net.at.logit_weights, net.logit_weights, g.classes * g.hidden, g.classes * g.hidden);
  fetch(net.at.logit_bias, net.logit_bias, g.classes, g.classes);
  // Samples that a block does not have, and the padding, stay zero.
  fetch(net.at.features, nullptr, 0, kCnnSamples * g.padded_features);
}

// Starts copying the resident rows of the dense layer's weights; they are needed much later.
// `kPacks`: rows can be read four elements at a time.
template <bool kPacks>
__device__ inline void fetch_dense_weights(const SmallCnn& net, const CnnShared& shared) {
  const CnnGeometry& g = net.g;
  float* const to = shared.floats(net.at.dense_weights);
  if constexpr (kPacks) {
#pragma unroll 1
    for (int i = thread_index(); i < net.resident * g.features / 4; i += kCnnThreads) {
      copy_async(to + i * 4, net.dense_weights + i * 4);
    }
  } else {
#pragma unroll 1
    for (int i = thread_index(); i < net.resident * g.padded_features; i += kCnnThreads) {
      const int row = i / g.padded_features, k = i % g.padded_features;
      fetch_float(to + i, k < g.features ? net.dense_weights + row * g.features + k : nullptr);
    }
  }
}

// Four neighbouring pixels at a time where rows are fours.
__device__ inline void load_images(const SmallCnn& net, const CnnShared& shared, int first) {
  const CnnGeometry& g = net.g;
  const int pixels = g.image_h * g.image_w;
  const std::uint8_t* const from = net.pixels + static_cast<std::int64_t>(first) * pixels;
  const auto place = [&](int index) {
    const int row = index / g.image_w;
    return shared.floats(net.at.image) + row / g.image_h * g.image_plane +
           row % g.image_h * g.image_stride + index % g.image_w;
  };
  const auto value = [&](std::uint32_t pixel) {
    return fmaf(static_cast<float>(pixel & 0xFFU), net.scale, net.shift);
  };
  const int all = net.samples * pixels;
  const int there = (g.batch - first < net.samples ? g.batch - first : net.samples) * pixels;
  if (g.image_w % 4 == 0 && reinterpret_cast<std::uintptr_t>(net.pixels) % 4 == 0) {
#pragma unroll 2
    for (int i = thread_index() * 4; i < all; i += kCnnThreads * 4) {
      const std::uint32_t four =
          i < there ? __ldg(reinterpret_cast<const std::uint32_t*>(from + i)) : 0U;
      auto* const to = reinterpret_cast<float2*>(place(i));
      to[0] = make_float2(value(four), value(four >> 8));
      to[1] = make_float2(value(four >> 16), value(four >> 24));
    }
  } else {
#pragma unroll 1
    for (int i = thread_index(); i < all; i += kCnnThreads) {
      *place(i) = value(i < there ? __ldg(from + i) : 0U);
    }
  }
}

template <int kKernel>
__device__ inline void first_conv(const SmallCnn& net, const CnnShared& shared) {
  const CnnGeometry& g = net.g;
  const int fours = g.padded1 / 4, pixels = g.pool1_h * g.pool1_w;
#pragma unroll 1
  for (int task = thread_index(); task < net.samples * pixels * fours; task += kCnnThreads) {
    const int filter = task % fours * 4, pixel = task / fours % pixels;
    const int sample = task / fours / pixels;
    const int row = pixel / g.pool1_w, column = pixel % g.pool1_w;
    float sums[4][4] = {};
    convolve_tile<kKernel>(shared.floats(net.at.image) + sample * g.image_plane +
                               2 * row * g.image_stride + 2 * column,
                           g.image_stride, 0, 1, shared.floats(net.at.weights1) + filter, g.padded1,
                           sums);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (filter + j >= g.filters1) break;
      const Largest largest(sums, j);
      const int channel = sample * g.filters1 + filter + j;
      shared.floats(net.at.pool1)[channel * g.pool1_plane + row * g.pool1_stride + column] =
          relu(largest.value + shared.floats(net.at.bias1)[filter + j]);
      shared.bytes(net.at.positions1)[channel * pixels + pixel] =
          static_cast<std::uint8_t>(largest.position);
    }
  }
}

template <int kKernel>
__device__ inline void second_conv(const SmallCnn& net, const CnnShared& shared) {
  const CnnGeometry& g = net.g;
  const int fours = g.padded2 / 4;
#pragma unroll 1
  for (int task = thread_index(); task < net.samples * g.pooled2 * fours; task += kCnnThreads) {
    const int filter = task % fours * 4, pixel = task / fours % g.pooled2;
    const int sample = task / fours / g.pooled2;
    const int row = pixel / g.pool2_w, column = pixel % g.pool2_w;
    float sums[4][4] = {};
    convolve_tile<kKernel>(shared.floats(net.at.pool1) + sample * g.filters1 * g.pool1_plane +
                               2 * row * g.pool1_stride + 2 * column,
                           g.pool1_stride, g.pool1_plane, g.filters1,
                           shared.floats(net.at.weights2) + filter, g.padded2, sums);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      if (filter + j >= g.filters2) break;
      const Largest largest(sums, j);
      const int feature = (filter + j) * g.pooled2 + pixel;
      shared.floats(net.at.features)[sample * g.padded_features + feature] =
          relu(largest.value + shared.floats(net.at.bias2)[filter + j]);
      shared.bytes(net.at.positions2)[sample * g.features + feature] =
          static_cast<std::uint8_t>(largest.position);
    }
  }
}

// For the gradient of the dense layer's weights, which another kernel sums over all samples.
__device__ inline void keep_features(const SmallCnn& net, const CnnShared& shared, int first) {
  const CnnGeometry& g = net.g;
#pragma unroll 1
  for (int i = thread_index(); i < net.samples * g.features; i += kCnnThreads) {
    const int sample = i / g.features, feature = i % g.features;
    if (first + sample >= g.batch) break;
    net.kept_features[static_cast<std::int64_t>(first + sample) * feature_stride(g) + feature] =
        shared.floats(net.at.features)[sample * g.padded_features + feature];
  }
}

// Rows of the dense layer's weights in shared memory, or where they always lie.
struct ResidentRows {
  const float* rows;
  int stride;

  [[nodiscard]] __device__ __forceinline__ float4 load(int row, int feature) const {
    return *reinterpret_cast<const float4*>(rows + row * stride + feature);
  }
};
template <bool kPacks>
struct StreamedRows {
  const float* rows;
  int features;

  [[nodiscard]] __device__ __forceinline__ float4 load(int row, int feature) const {
    const float* const from = rows + row * features + feature;
    if constexpr (kPacks) {
      return __ldg(reinterpret_cast<const float4*>(from));
    } else {
      const auto one = [&](int i) { return feature + i < features ? __ldg(from + i) : 0.0F; };
      return {one(0), one(1), one(2), one(3)};
    }
  }
};

__device__ __forceinline__ float dot(const float4& a, const float4& b, float sum) {
  return fmaf(a.w, b.w, fmaf(a.z, b.z, fmaf(a.y, b.y, fmaf(a.x, b.x, sum))));
}

// values[i] of all lanes are added, for the lanes whose number has the remainder i: exchanges halve
// what is left to add as long as there is more than one number.
template <int kCount, int kHalf = 16>
__device__ __forceinline__ float sum_for_each_lane(float (&values)[kCount], int lane) {
  if constexpr (kHalf >= kCount) {
#pragma unroll
    for (float& value : values) value += __shfl_xor_sync(0xFFFFFFFFU, value, kHalf);
  } else {
    const bool upper = (lane & kHalf) != 0;
#pragma unroll
    for (int i = 0; i < kHalf; ++i) {
      const float sent = upper ? values[i] : values[i + kHalf];
      const float kept = upper ? values[i + kHalf] : values[i];
      values[i] = kept + __shfl_xor_sync(0xFFFFFFFFU, sent, kHalf);
    }
  }
  if constexpr (kHalf > 1) {
    return sum_for_each_lane<kCount, kHalf / 2>(values, lane);
  } else {
    return values[0];
  }
}

// kUnits units of four samples, for a warp: lanes run along the features. kAhead packs of each row
// are on their way at once.
template <int kUnits, int kAhead, typename WeightRows>
__device__ __forceinline__ void dense_units(const SmallCnn& net, const CnnShared& shared,
                                            const WeightRows& weights, int first, int end) {
  const CnnGeometry& g = net.g;
  const int lane = thread_index() % 32;
  const float* const features = shared.floats(net.at.features);
  float sums[kUnits * kCnnSamples] = {};
  for (int begin = lane * 4; begin < g.padded_features; begin += kAhead * 128) {
    float4 w[kAhead][kUnits];
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      const int k = begin + a * 128;
#pragma unroll
      for (int i = 0; i < kUnits; ++i) {
        w[a][i] = k < g.padded_features ? weights.load(first + i < end ? first + i : end - 1, k)
                                        : make_float4(0.0F, 0.0F, 0.0F, 0.0F);
      }
    }
#pragma unroll
    for (int a = 0; a < kAhead; ++a) {
      const int k = begin + a * 128 < g.padded_features ? begin + a * 128 : begin;
      float4 x[kCnnSamples];
#pragma unroll
      for (int s = 0; s < kCnnSamples; ++s) {
        x[s] = *reinterpret_cast<const float4*>(features + s * g.padded_features + k);
      }
#pragma unroll
      for (int i = 0; i < kUnits; ++i) {
#pragma unroll
        for (int s = 0; s < kCnnSamples; ++s) {
          sums[i * kCnnSamples + s] = dot(w[a][i], x[s], sums[i * kCnnSamples + s]);
        }
      }
    }
  }
  const float sum = sum_for_each_lane(sums, lane);
  const int unit = first + lane / kCnnSamples;
  if (lane >= kUnits * kCnnSamples || unit >= end) return;
  shared.floats(net.at.hidden)[first * kCnnSamples + lane] =
      relu(sum + shared.floats(net.at.dense_bias)[unit]);
}

// Streamed rows come first, few to a warp, since all warps wait for them alike.
template <bool kPacks>
__device__ inline void dense_layer(const SmallCnn& net, const CnnShared& shared) {
  const CnnGeometry& g = net.g;
  const int warp = thread_index() / 32;
  const StreamedRows<kPacks> streamed = {net.dense_weights, g.features};
  for (int first = net.resident + warp * 2; first < g.hidden; first += kCnnWarps * 2) {
    dense_units<2, 4>(net, shared, streamed, first, g.hidden);
  }
  const ResidentRows resident = {shared.floats(net.at.dense_weights), g.padded_features};
  for (int first = warp * 8; first < net.resident; first += kCnnWarps * 8) {
    dense_units<8, 1>(net, shared, resident, first, net.resident);
  }
}

// A warp to a class.
__device__ inline void logit_layer(const SmallCnn& net, const CnnShared& shared) {
  const CnnGeometry& g = net.g;
  const int lane = thread_index() % 32;
  const float* const hidden = shared.floats(net.at.hidden);
#pragma unroll 1
  for (int k = thread_index() / 32; k < g.classes; k += kCnnWarps) {
    const float* const weights = shared.floats(net.at.logit_weights) + k * g.hidden;
    float sums[kCnnSamples] = {};
    for (int unit = lane; unit < g.hidden; unit += 32) {
      const float4 x = *reinterpret_cast<const float4*>(hidden + unit * kCnnSamples);
      sums[0] = fmaf(weights[unit], x.x, sums[0]);
      sums[1] = fmaf(weights[unit], x.y, sums[1]);
      sums[2] = fmaf(weights[unit], x.z, sums[2]);
      sums[3] = fmaf(weights[unit], x.w, sums[3]);
    }
#pragma unroll
    for (int s = 0; s < kCnnSamples; ++s) {
      const float sum = warp_sum(sums[s]);
      if (lane == s) {
        shared.floats(net.at.logits)[s * kMaxCnnClasses + k] =
            sum + shared.floats(net.at.logit_bias)[k];
      }
    }
  }
}

// A warp to a sample, a lane to a class.
__device__ inline void loss_layer(const SmallCnn& net, const CnnShared& shared, int first,
                                  std::int64_t valid, const LossOptions& options, LossSums& sums) {
  const int sample = thread_index() / 32, lane = thread_index() % 32;
  if (sample >= kCnnSamples) return;
  const bool counts = sample < net.samples && first + sample < valid;
  const LossLabel label = {counts ? net.labels[first + sample] : 0, counts};
  const int at = sample * kMaxCnnClasses + lane;
  float x[1] = {lane < net.g.classes ? shared.floats(net.at.logits)[at] : 0.0F};
  softmax_row<32>(x, lane, net.g.classes, options, label, sums);
  shared.floats(net.at.diff_logits)[at] = x[0];
}

}  // namespace ridgeline::cuda
