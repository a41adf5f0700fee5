#pragma once

// The backward half of a small convolutional network's step. All functions are for a whole block of
// kCnnThreads; none synchronises it.

#include "backends/cuda/whole_step/small_cnn_forward.cuh"

namespace ridgeline::cuda {

// Where a block adds up its gradients. An element belongs to one thread; the first samples
// overwrite.
struct CnnGradients {
  float* out;
  bool first;

  __device__ __forceinline__ void add(int index, float value) const {
    out[index] = first ? value : out[index] + value;
  }
};

__device__ inline void dense_diff(const SmallCnn& net, const CnnShared& shared, int first) {
  const CnnGeometry& g = net.g;
  const float* const diff_logits = shared.floats(net.at.diff_logits);
  const float* const weights = shared.floats(net.at.logit_weights);
#pragma unroll 1
  for (int i = thread_index(); i < g.hidden * kCnnSamples; i += kCnnThreads) {
    const int unit = i / kCnnSamples, sample = i % kCnnSamples;
    float sum = 0.0F;
#pragma unroll 4
    for (int k = 0; k < g.classes; ++k) {
      sum = fmaf(diff_logits[sample * kMaxCnnClasses + k], weights[k * g.hidden + unit], sum);
    }
    if (!(shared.floats(net.at.hidden)[i] > 0.0F)) sum = 0.0F;
    shared.floats(net.at.diff_hidden)[i] = sum;
    if (sample < net.samples && first + sample < g.batch) {
      net.kept_diff_hidden[static_cast<std::int64_t>(first + sample) * hidden_stride(g) + unit] =
          sum;
    }
  }
}

// Both dense layers' biases and the weights of the second.
__device__ inline void dense_gradients(const SmallCnn& net, const CnnShared& shared,
                                       const CnnPartials& partials, const CnnGradients& gradients) {
  const CnnGeometry& g = net.g;
  const float* const diff_logits = shared.floats(net.at.diff_logits);
  const float* const hidden = shared.floats(net.at.hidden);
  const float* const diff_hidden = shared.floats(net.at.diff_hidden);
#pragma unroll 1
  for (int i = thread_index(); i < g.classes * g.hidden; i += kCnnThreads) {
    const int k = i / g.hidden, unit = i % g.hidden;
    float sum = 0.0F;
#pragma unroll
    for (int s = 0; s < kCnnSamples; ++s) {
      sum = fmaf(diff_logits[s * kMaxCnnClasses + k], hidden[unit * kCnnSamples + s], sum);
    }
    gradients.add(partials.logit_weights + i, sum);
  }
#pragma unroll 1
  for (int i = thread_index(); i < g.hidden + g.classes; i += kCnnThreads) {
    const int k = i - g.hidden;
    const float* const from = k < 0 ? diff_hidden + i * kCnnSamples : diff_logits + k;
    const int stride = k < 0 ? 1 : kMaxCnnClasses;
    float sum = 0.0F;
#pragma unroll
    for (int s = 0; s < kCnnSamples; ++s) sum += from[s * stride];
    gradients.add(k < 0 ? partials.dense_bias + i : partials.logit_bias + k, sum);
  }
}

// The gradient of four features in four samples, over a part of the hidden units.
struct FeatureDiffs {
  float sums[kCnnSamples][4] = {};

  __device__ __forceinline__ void add(const float4& weights, const float4& diffs) {
    const float weight[4] = {weights.x, weights.y, weights.z, weights.w};
    const float diff[kCnnSamples] = {diffs.x, diffs.y, diffs.z, diffs.w};
#pragma unroll
    for (int s = 0; s < kCnnSamples; ++s) {
#pragma unroll
      for (int i = 0; i < 4; ++i) sums[s][i] = fmaf(diff[s], weight[i], sums[s][i]);
    }
  }
};

template <bool kPacks>
__device__ __forceinline__ FeatureDiffs feature_diffs(const SmallCnn& net,
                                                      const CnnShared& shared) {
  const CnnGeometry& g = net.g;
  FeatureDiffs diffs;
  const int fours = g.padded_features / 4, split = thread_index() / fours;
  if (split >= net.splits) return diffs;
  const int feature = thread_index() % fours * 4;
  const auto* const diff_hidden =
      reinterpret_cast<const float4*>(shared.floats(net.at.diff_hidden));
  const ResidentRows resident = {shared.floats(net.at.dense_weights), g.padded_features};
  const StreamedRows<kPacks> streamed = {net.dense_weights, g.features};
  int unit = split;
#pragma unroll 4
  for (; unit < net.resident; unit += net.splits) {
    diffs.add(resident.load(unit, feature), diff_hidden[unit]);
  }
  constexpr int kAhead = 8;
  for (; unit < g.hidden; unit += kAhead * net.splits) {
    float4 rows[kAhead];
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int row = unit + i * net.splits;
      rows[i] = row < g.hidden ? streamed.load(row, feature) : make_float4(0.0F, 0.0F, 0.0F, 0.0F);
    }
#pragma unroll
    for (int i = 0; i < kAhead; ++i) {
      const int row = unit + i * net.splits;
      diffs.add(rows[i], diff_hidden[row < g.hidden ? row : unit]);
    }
  }
  return diffs;
}

// Puts the parts side by side, clears the gradient of the second convolution's result and turns its
// weights around: its data gradient is a convolution with them.
__device__ inline void begin_conv_backward(const SmallCnn& net, const CnnShared& shared,
                                           const FeatureDiffs& diffs) {
  const CnnGeometry& g = net.g;
  const int fours = g.padded_features / 4, split = thread_index() / fours;
  if (split < net.splits) {
    float* const out = shared.floats(net.at.parts) + split * kCnnSamples * g.padded_features +
                       thread_index() % fours * 4;
#pragma unroll
    for (int s = 0; s < kCnnSamples; ++s) {
      *reinterpret_cast<float4*>(out + s * g.padded_features) =
          make_float4(diffs.sums[s][0], diffs.sums[s][1], diffs.sums[s][2], diffs.sums[s][3]);
    }
  }
  auto* const diff_conv2 = reinterpret_cast<float2*>(shared.floats(net.at.diff_conv2));
#pragma unroll 1
  for (int i = thread_index(); i < net.samples * g.filters2 * g.diff_plane / 2; i += kCnnThreads) {
    diff_conv2[i] = make_float2(0.0F, 0.0F);
  }
  const float* const weights = shared.floats(net.at.weights2);
  float* const turned = shared.floats(net.at.turned_weights2);
#pragma unroll 1
  for (int i = thread_index(); i < g.filters2 * g.taps * g.padded1; i += kCnnThreads) {
    const int channel = i % g.padded1, tap = i / g.padded1 % g.taps;
    const int filter = i / g.padded1 / g.taps;
    turned[i] = channel < g.filters1
                    ? weights[(channel * g.taps + g.taps - 1 - tap) * g.padded2 + filter]
                    : 0.0F;
  }
}

// Adds the parts of the features' gradient. It goes through ReLU where the feature is positive, and
// through the pooling to the position of the maximum. The features make room for it.
template <int kKernel>
__device__ inline void scatter_feature_diffs(const SmallCnn& net, const CnnShared& shared) {
  const CnnGeometry& g = net.g;
  float* const features = shared.floats(net.at.features);
  const float* const parts = shared.floats(net.at.parts);
#pragma unroll 1
  for (int i = thread_index(); i < net.samples * g.features; i += kCnnThreads) {
    const int sample = i / g.features, feature = i % g.features;
    const int at = sample * g.padded_features + feature;
    float sum = 0.0F;
    for (int split = 0; split < net.splits; ++split) {
      sum += parts[split * kCnnSamples * g.padded_features + at];
    }
    if (!(features[at] > 0.0F)) sum = 0.0F;
    features[at] = sum;
    const int filter = feature / g.pooled2, pixel = feature % g.pooled2;
    const int position = shared.bytes(net.at.positions2)[i];
    const int row = 2 * (pixel / g.pool2_w) + position / 2 + kKernel - 1;
    const int column = 2 * (pixel % g.pool2_w) + position % 2 + kKernel - 1;
    shared.floats(net.at.diff_conv2)[(sample * g.filters2 + filter) * g.diff_plane +
                                     row * g.diff_stride + column] = sum;
  }
}

// The gradient of the first pooling's result, through ReLU where that is positive.
template <int kKernel>
__device__ inline void second_conv_data(const SmallCnn& net, const CnnShared& shared) {
  const CnnGeometry& g = net.g;
  const int fours = g.padded1 / 4, tiles = g.tiles_h * g.tiles_w;
#pragma unroll 1
  for (int task = thread_index(); task < net.samples * tiles * fours; task += kCnnThreads) {
    const int channel = task % fours * 4, tile = task / fours % tiles;
    const int sample = task / fours / tiles;
    const int row = 2 * (tile / g.tiles_w), column = 2 * (tile % g.tiles_w);
    float sums[4][4] = {};
    convolve_tile<kKernel>(shared.floats(net.at.diff_conv2) + sample * g.filters2 * g.diff_plane +
                               row * g.diff_stride + column,
                           g.diff_stride, g.diff_plane, g.filters2,
                           shared.floats(net.at.turned_weights2) + channel, g.padded1, sums);
#pragma unroll
    for (int j = 0; j < 4; ++j) {
#pragma unroll
      for (int pixel = 0; pixel < 4; ++pixel) {
        const int h = row + pixel / 2, w = column + pixel % 2;
        if (channel + j >= g.filters1 || h >= g.pool1_h || w >= g.pool1_w) continue;
        const int at = (sample * g.filters1 + channel + j) * g.pool1_plane + h * g.pool1_stride + w;
        const bool active = shared.floats(net.at.pool1)[at] > 0.0F;
        shared.floats(net.at.diff_pool1)[at] = active ? sums[pixel][j] : 0.0F;
      }
    }
  }
}

// diff_weights2 and diff_bias2 of each sample. Of every pooling window one pixel has a gradient: a
// thread takes a filter and a channel and goes through the windows. Neighbouring threads have
// neighbouring channels.
template <int kKernel>
__device__ inline void second_conv_weights(const SmallCnn& net, const CnnShared& shared) {
  const CnnGeometry& g = net.g;
  const int pairs = g.filters1 * g.filters2;
  float* const weights = shared.floats(net.at.parts);
  float* const biases = weights + net.samples * pairs * g.taps;
#pragma unroll 1
  for (int task = thread_index(); task < net.samples * pairs; task += kCnnThreads) {
    const int channel = task % g.filters1, filter = task / g.filters1 % g.filters2;
    const int sample = task / pairs;
    const float* diff =
        shared.floats(net.at.features) + sample * g.padded_features + filter * g.pooled2;
    const std::uint8_t* position =
        shared.bytes(net.at.positions2) + sample * g.features + filter * g.pooled2;
    const float* const src =
        shared.floats(net.at.pool1) + (sample * g.filters1 + channel) * g.pool1_plane;
    float sums[kKernel * kKernel] = {}, bias = 0.0F;
    for (int row = 0; row < g.pool2_h; ++row) {
      for (int column = 0; column < g.pool2_w; ++column, ++diff, ++position) {
        const float* const from =
            src + (2 * row + *position / 2) * g.pool1_stride + 2 * column + *position % 2;
#pragma unroll
        for (int tap = 0; tap < kKernel * kKernel; ++tap) {
          sums[tap] = fmaf(*diff, from[tap / kKernel * g.pool1_stride + tap % kKernel], sums[tap]);
        }
        bias += *diff;
      }
    }
#pragma unroll
    for (int tap = 0; tap < kKernel * kKernel; ++tap) {
      weights[task * kKernel * kKernel + tap] = sums[tap];
    }
    if (channel == 0) biases[sample * g.filters2 + filter] = bias;
  }
}

// `samples` numbers, `stride` apart.
__device__ __forceinline__ float sum_of_samples(const float* values, int samples, int stride) {
  float sum = 0.0F;
  for (int s = 0; s < samples; ++s) sum += values[s * stride];
  return sum;
}

__device__ inline void second_conv_sums(const SmallCnn& net, const CnnShared& shared,
                                        const CnnPartials& partials,
                                        const CnnGradients& gradients) {
  const CnnGeometry& g = net.g;
  const int weights = g.filters1 * g.filters2 * g.taps;
  const float* const parts = shared.floats(net.at.parts);
#pragma unroll 1
  for (int i = thread_index(); i < weights; i += kCnnThreads) {
    gradients.add(partials.weights2 + i, sum_of_samples(parts + i, net.samples, weights));
  }
#pragma unroll 1
  for (int i = thread_index(); i < g.filters2; i += kCnnThreads) {
    gradients.add(partials.bias2 + i,
                  sum_of_samples(parts + net.samples * weights + i, net.samples, g.filters2));
  }
}

// diff_weights1 and diff_bias1 of each sample: a warp to a filter, lanes along the windows.
template <int kKernel>
__device__ inline void first_conv_weights(const SmallCnn& net, const CnnShared& shared) {
  constexpr int kSums = kKernel * kKernel + 1;
  const CnnGeometry& g = net.g;
  const int lane = thread_index() % 32, pixels = g.pool1_h * g.pool1_w;
#pragma unroll 1
  for (int task = thread_index() / 32; task < net.samples * g.filters1; task += kCnnWarps) {
    const float* const image = shared.floats(net.at.image) + task / g.filters1 * g.image_plane;
    const float* const diffs = shared.floats(net.at.diff_pool1) + task * g.pool1_plane;
    const std::uint8_t* const positions = shared.bytes(net.at.positions1) + task * pixels;
    float sums[kSums] = {};
    for (int pixel = lane; pixel < pixels; pixel += 32) {
      const int row = pixel / g.pool1_w, column = pixel % g.pool1_w;
      const float diff = diffs[row * g.pool1_stride + column];
      const int position = positions[pixel];
      const float* const from =
          image + (2 * row + position / 2) * g.image_stride + 2 * column + position % 2;
#pragma unroll
      for (int tap = 0; tap < kSums - 1; ++tap) {
        sums[tap] = fmaf(diff, from[tap / kKernel * g.image_stride + tap % kKernel], sums[tap]);
      }
      sums[kSums - 1] += diff;
    }
    float own = 0.0F;
#pragma unroll
    for (int i = 0; i < kSums; ++i) {
      const float sum = warp_sum(sums[i]);
      if (lane == i) own = sum;
    }
    if (lane < kSums) shared.floats(net.at.diff_weights1)[task * kSums + lane] = own;
  }
}

__device__ inline void first_conv_sums(const SmallCnn& net, const CnnShared& shared,
                                       const CnnPartials& partials, const CnnGradients& gradients) {
  const CnnGeometry& g = net.g;
  const float* const parts = shared.floats(net.at.diff_weights1);
#pragma unroll 1
  for (int i = thread_index(); i < g.filters1 * (g.taps + 1); i += kCnnThreads) {
    const int filter = i / (g.taps + 1), tap = i % (g.taps + 1);
    const float sum = sum_of_samples(parts + i, net.samples, g.filters1 * (g.taps + 1));
    gradients.add(
        tap == g.taps ? partials.bias1 + filter : partials.weights1 + filter * g.taps + tap, sum);
  }
}

}  // namespace ridgeline::cuda
