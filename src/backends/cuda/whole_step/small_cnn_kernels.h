#pragma once

// The training step of a small convolutional network on grey images: twice convolution, ReLU and
// 2x2 max pooling, then a dense layer with ReLU, another one and the loss.

#include <cstdint>

#include "backends/cuda/launch.h"
#include "backends/cuda/sums/partial_sums.h"

namespace ridgeline::cuda {

inline constexpr int kCnnThreads = 512, kCnnWarps = kCnnThreads / 32;
inline constexpr int kCnnSamples = 4;  // the most that a block takes at a time
inline constexpr int kMaxCnnHidden = 256, kMaxCnnClasses = 32, kMaxCnnFilters = 32;
inline constexpr int kMaxCnnFeatures = 2048;

// What a network is, and sizes that follow. Strides and planes are of shared memory.
struct CnnGeometry {
  int batch = 0, image_h = 0, image_w = 0;
  int kernel = 0;  // 3 or 5
  int filters1 = 0, filters2 = 0, hidden = 0, classes = 0;

  int taps = 0;                           // of a kernel
  int image_stride = 0, image_plane = 0;  // even
  int padded1 = 0, padded2 = 0;           // filters, a multiple of 4
  int pool1_h = 0, pool1_w = 0, pool1_stride = 0, pool1_plane = 0;
  int pool2_h = 0, pool2_w = 0, pooled2 = 0;
  int features = 0, padded_features = 0;  // a multiple of 4
  // The gradient of the second convolution's result, with a margin of zeros; tiles of 2 x 2 pixels
  // of its input.
  int diff_stride = 0, diff_plane = 0, tiles_h = 0, tiles_w = 0;
};

// Where things lie in shared memory, in bytes.
struct CnnPlaces {
  int image = 0;                                          // [sample][row][image_stride]
  int weights1 = 0, weights2 = 0, bias1 = 0, bias2 = 0;   // [channel][tap][filter], padded
  int dense_bias = 0, logit_weights = 0, logit_bias = 0;  // as in the graph
  int pool1 = 0, positions1 = 0;     // [sample][filter][row][pool1_stride]; without gaps
  int features = 0, positions2 = 0;  // [kCnnSamples][padded_features]; [sample][features]
  int hidden = 0, diff_hidden = 0;   // [unit][kCnnSamples]
  int logits = 0, diff_logits = 0;   // [kCnnSamples][kMaxCnnClasses]
  int diff_weights1 = 0;             // [sample][filter][taps + 1]
  int loss = 0;                      // [kCnnSamples][kLossSums]
  // First the dense layer's weights, as many rows as there is room for. They are done with when the
  // convolutions' gradients begin, which lie at the same place.
  int dense_weights = 0;    // [resident][padded_features]
  int diff_conv2 = 0;       // [sample][filter][diff_plane]
  int turned_weights2 = 0;  // [filter][tap, from the last][channel]
  int diff_pool1 = 0;       // as pool1
  int parts = 0;            // of sums: diff_features, then diff_weights2 and diff_bias2
};

struct SmallCnn {
  CnnGeometry g;
  CnnPlaces at;
  int samples = 0;   // of a block at a time
  int resident = 0;  // rows of the dense layer's weights in shared memory; others are streamed
  int splits = 0;    // of the hidden units, in the gradient of the features
  int blocks = 0;
  int shared_bytes = 0;

  const std::uint8_t* pixels = nullptr;
  float scale = 1.0F, shift = 0.0F;  // of a pixel
  const std::int32_t* labels = nullptr;
  const StepState* state = nullptr;
  float smoothing = 0.0F;
  double diff_weight = 1.0;  // of the loss's gradient: of a part of a batch its share
  // As in the graph: (filters, channels, kernel, kernel) and (outputs, inputs).
  const float* weights1 = nullptr;
  const float* bias1 = nullptr;
  const float* weights2 = nullptr;
  const float* bias2 = nullptr;
  const float* dense_weights = nullptr;
  const float* dense_bias = nullptr;
  const float* logit_weights = nullptr;
  const float* logit_bias = nullptr;

  // Workspace: each block's small gradients and sums of losses; what the dense layer's gradient is
  // made of, whose rows are padded with whatever is there.
  float* partials = nullptr;
  float* kept_features = nullptr;     // [batch][feature_stride]
  float* kept_diff_hidden = nullptr;  // [batch][hidden_stride]
};

// Of the dense layer's gradient: a block makes kUnitTile x kFeatureTile elements.
inline constexpr int kUnitTile = 16, kFeatureTile = 32;
[[nodiscard]] constexpr int feature_stride(const CnnGeometry& g) {
  return (g.features + kFeatureTile - 1) / kFeatureTile * kFeatureTile;
}
[[nodiscard]] constexpr int hidden_stride(const CnnGeometry& g) {
  return (g.hidden + kUnitTile - 1) / kUnitTile * kUnitTile;
}

// A block's partial sums, in this order.
struct CnnPartials {
  int weights1, bias1, weights2, bias2, dense_bias, logit_weights, logit_bias, loss, stride;

  constexpr explicit CnnPartials(const CnnGeometry& g)
      : weights1(0),
        bias1(weights1 + g.filters1 * g.taps),
        weights2(bias1 + g.filters1),
        bias2(weights2 + g.filters2 * g.filters1 * g.taps),
        dense_bias(bias2 + g.filters2),
        logit_weights(dense_bias + g.hidden),
        logit_bias(logit_weights + g.classes * g.hidden),
        loss(logit_bias + g.classes),
        stride((loss + kLossSums + 15) / 16 * 16) {}
};

// Fills in the sizes, the places and the number of blocks from what the network is. False: not even
// one sample fits the device's shared memory.
[[nodiscard]] bool plan_small_cnn(SmallCnn& net, const DeviceLimits& device);

// From pixels to partial sums.
void launch_small_cnn_step(const SmallCnn& net, Stream stream);
// All gradients, the loss and the totals.
void launch_small_cnn_sums(const SmallCnn& net, float* diff_dense_weights, const PartialSums& sums,
                           const LossTotals& loss, Stream stream);

}  // namespace ridgeline::cuda
