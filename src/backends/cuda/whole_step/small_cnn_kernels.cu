// A small convolutional network's step in two kernels. In the first, a block takes a few samples
// through the whole network and back, everything between pixels and gradients in shared memory, and
// leaves its sums of the small gradients behind. The second multiplies what the dense layer's
// gradient is made of, which would be too large for a sum in every block, and adds the sums.

#include "backends/cuda/whole_step/small_cnn_backward.cuh"

namespace ridgeline::cuda {
namespace {

template <int kKernel, bool kPacks>
__global__ void __launch_bounds__(kCnnThreads, 1) small_cnn_step(SmallCnn net) {
  extern __shared__ __align__(16) std::byte memory[];
  const CnnShared shared = {memory};
  const CnnPartials partials(net.g);
  float* const out = net.partials + static_cast<std::int64_t>(blockIdx.x) * partials.stride;
  const std::int64_t valid = valid_rows(net.state, net.g.batch);
  const double weighted = net.state->loss_scale * net.diff_weight;
  const double scale = valid > 0 ? weighted / static_cast<double>(valid) : 0.0;
  const LossOptions options = {net.smoothing, static_cast<float>(scale)};
  LossSums loss;

  fetch_parameters(net, shared);
  const int begin = static_cast<int>(blockIdx.x) * net.samples;
  for (int first = begin; first < net.g.batch; first += static_cast<int>(gridDim.x) * net.samples) {
    const CnnGradients gradients = {out, first == begin};
    copy_commit();
    fetch_dense_weights<kPacks>(net, shared);
    copy_commit();
    load_images(net, shared, first);
    copy_wait<1>();
    __syncthreads();
    first_conv<kKernel>(net, shared);
    __syncthreads();
    second_conv<kKernel>(net, shared);
    copy_wait<0>();
    __syncthreads();
    keep_features(net, shared, first);
    dense_layer<kPacks>(net, shared);
    __syncthreads();
    logit_layer(net, shared);
    __syncthreads();
    loss_layer(net, shared, first, valid, options, loss);
    __syncthreads();
    dense_diff(net, shared, first);
    __syncthreads();
    dense_gradients(net, shared, partials, gradients);
    const FeatureDiffs diffs = feature_diffs<kPacks>(net, shared);
    __syncthreads();
    begin_conv_backward(net, shared, diffs);
    __syncthreads();
    scatter_feature_diffs<kKernel>(net, shared);
    __syncthreads();
    second_conv_data<kKernel>(net, shared);
    second_conv_weights<kKernel>(net, shared);
    __syncthreads();
    second_conv_sums(net, shared, partials, gradients);
    first_conv_weights<kKernel>(net, shared);
    __syncthreads();
    first_conv_sums(net, shared, partials, gradients);
  }

  float* const sums = shared.floats(net.at.loss);
  const int sample = thread_index() / 32;
  if (sample < kCnnSamples && thread_index() % 32 == 0) {
    sums[sample * kLossSums] = loss.loss;
    sums[sample * kLossSums + 1] = loss.top1;
    sums[sample * kLossSums + 2] = loss.top5;
  }
  __syncthreads();
  if (thread_index() < kLossSums) {
    out[partials.loss + thread_index()] =
        sum_of_samples(sums + thread_index(), kCnnSamples, kLossSums);
  }
}

// Elements of diff_dense_weights = diff_hiddenᵀ · features: a warp takes every eighth sample, a
// lane 4 x 4 elements.
__device__ void add_dense_weights(const SmallCnn& net, int tile, float* diff_weights) {
  constexpr int kWarps = kSumThreads / 32, kElements = kUnitTile * kFeatureTile;
  __shared__ __align__(16) float parts[kWarps][kElements];
  const CnnGeometry& g = net.g;
  const int lane = thread_index() % 32, warp = thread_index() / 32;
  const int tiles = feature_stride(g) / kFeatureTile;
  const int first_unit = tile / tiles * kUnitTile, first_feature = tile % tiles * kFeatureTile;
  const int unit = lane / 8 * 4, feature = lane % 8 * 4;
  float sums[4][4] = {};
#pragma unroll 8
  for (int n = warp; n < g.batch; n += kWarps) {
    const float4 d = __ldg(reinterpret_cast<const float4*>(
        net.kept_diff_hidden + static_cast<std::int64_t>(n) * hidden_stride(g) + first_unit +
        unit));
    const float4 x = __ldg(reinterpret_cast<const float4*>(
        net.kept_features + static_cast<std::int64_t>(n) * feature_stride(g) + first_feature +
        feature));
    const float diff[4] = {d.x, d.y, d.z, d.w}, src[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
      for (int j = 0; j < 4; ++j) sums[i][j] = fmaf(diff[i], src[j], sums[i][j]);
    }
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    *reinterpret_cast<float4*>(&parts[warp][(unit + i) * kFeatureTile + feature]) =
        make_float4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
  }
  __syncthreads();
  for (int i = thread_index(); i < kElements; i += kSumThreads) {
    const int u = first_unit + i / kFeatureTile, f = first_feature + i % kFeatureTile;
    if (u >= g.hidden || f >= g.features) continue;
    diff_weights[u * g.features + f] = sum_of_samples(&parts[0][i], kWarps, kElements);
  }
}

constexpr int dense_tiles(const CnnGeometry& g) {
  return hidden_stride(g) / kUnitTile * (feature_stride(g) / kFeatureTile);
}

__global__ void __launch_bounds__(kSumThreads)
    small_cnn_sums(SmallCnn net, float* diff_dense_weights, PartialSums sums, LossTotals loss) {
  const int block = static_cast<int>(blockIdx.x), tiles = dense_tiles(net.g);
  if (block < tiles) {
    add_dense_weights(net, block, diff_dense_weights);
  } else if (block < tiles + sum_blocks(sums)) {
    add_partials(sums, block - tiles);
  } else if (threadIdx.x < 32) {
    finish_loss(loss);
  }
}

// Whether rows of the dense layer's weights can be read four elements at a time.
bool has_packs(const SmallCnn& net) {
  return net.g.features % 4 == 0 && reinterpret_cast<std::uintptr_t>(net.dense_weights) % 16 == 0;
}

}  // namespace

void launch_small_cnn_step(const SmallCnn& net, Stream stream) {
  const bool packs = has_packs(net);
  const auto kernel = net.g.kernel == 3
                          ? (packs ? small_cnn_step<3, true> : small_cnn_step<3, false>)
                          : (packs ? small_cnn_step<5, true> : small_cnn_step<5, false>);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, net.shared_bytes);
  kernel<<<static_cast<unsigned>(net.blocks), kCnnThreads,
           static_cast<std::size_t>(net.shared_bytes), stream>>>(net);
  check_launch("small_cnn_step");
}

void launch_small_cnn_sums(const SmallCnn& net, float* diff_dense_weights, const PartialSums& sums,
                           const LossTotals& loss, Stream stream) {
  const int blocks = dense_tiles(net.g) + sum_blocks(sums) + 1;
  small_cnn_sums<<<static_cast<unsigned>(blocks), kSumThreads, 0, stream>>>(net, diff_dense_weights,
                                                                            sums, loss);
  check_launch("small_cnn_sums");
}

}  // namespace ridgeline::cuda
