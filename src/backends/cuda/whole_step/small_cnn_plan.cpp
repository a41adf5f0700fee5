// Sizes and places of a small convolutional network's step.

#include <algorithm>

#include "backends/cuda/whole_step/small_cnn_kernels.h"

namespace ridgeline::cuda {
namespace {

int round_up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

// The smallest number from `value` on that leaves this remainder.
int raise_to(int value, int modulus, int remainder) {
  return value + (remainder - value % modulus + modulus) % modulus;
}

void fill_geometry(CnnGeometry& g) {
  g.taps = g.kernel * g.kernel;
  g.image_stride = round_up(g.image_w, 2);
  g.image_plane = g.image_h * g.image_stride;
  g.padded1 = round_up(g.filters1, 4);
  g.padded2 = round_up(g.filters2, 4);
  const auto pooled = [&](int size) { return (size - g.kernel + 1) / 2; };
  g.pool1_h = pooled(g.image_h);
  g.pool1_w = pooled(g.image_w);
  // The four positions of a maximum, in eight channels, then lie in 32 different banks.
  g.pool1_stride = raise_to(g.pool1_w, 4, 2);
  g.pool1_plane = raise_to(g.pool1_h * g.pool1_stride, 32, 4);
  g.pool2_h = pooled(g.pool1_h);
  g.pool2_w = pooled(g.pool1_w);
  g.pooled2 = g.pool2_h * g.pool2_w;
  g.features = g.filters2 * g.pooled2;
  g.padded_features = round_up(g.features, 4);
  g.tiles_h = (g.pool1_h + 1) / 2;
  g.tiles_w = (g.pool1_w + 1) / 2;
  g.diff_stride = round_up(2 * g.tiles_w + g.kernel - 1, 2);
  g.diff_plane = (2 * g.tiles_h + g.kernel - 1) * g.diff_stride;
}

// Hands out places one behind the other.
class Places {
 public:
  explicit Places(int begin) : end_(begin) {}
  int take(int bytes) {
    const int place = end_;
    end_ += round_up(bytes, 16);
    return place;
  }
  int take_floats(int count) { return take(count * 4); }
  [[nodiscard]] int end() const { return end_; }

 private:
  int end_;
};

// Returns the bytes that are needed without rows of the dense layer's weights.
int fill_places(SmallCnn& net) {
  const CnnGeometry& g = net.g;
  const int n = net.samples;
  Places places(0);
  CnnPlaces& at = net.at;
  at.image = places.take_floats(n * g.image_plane);
  at.weights1 = places.take_floats(g.taps * g.padded1);
  at.weights2 = places.take_floats(g.filters1 * g.taps * g.padded2);
  at.bias1 = places.take_floats(g.padded1);
  at.bias2 = places.take_floats(g.padded2);
  at.dense_bias = places.take_floats(g.hidden);
  at.logit_weights = places.take_floats(g.classes * g.hidden);
  at.logit_bias = places.take_floats(g.classes);
  at.pool1 = places.take_floats(n * g.filters1 * g.pool1_plane);
  at.positions1 = places.take(n * g.filters1 * g.pool1_h * g.pool1_w);
  at.features = places.take_floats(kCnnSamples * g.padded_features);
  at.positions2 = places.take(n * g.features);
  at.hidden = places.take_floats(g.hidden * kCnnSamples);
  at.diff_hidden = places.take_floats(g.hidden * kCnnSamples);
  at.logits = places.take_floats(kCnnSamples * kMaxCnnClasses);
  at.diff_logits = places.take_floats(kCnnSamples * kMaxCnnClasses);
  at.diff_weights1 = places.take_floats(n * g.filters1 * (g.taps + 1));
  at.loss = places.take_floats(kCnnSamples * kLossSums);
  at.dense_weights = places.end();
  at.diff_conv2 = places.take_floats(n * g.filters2 * g.diff_plane);
  at.turned_weights2 = places.take_floats(g.filters2 * g.taps * g.padded1);
  at.diff_pool1 = places.take_floats(n * g.filters1 * g.pool1_plane);
  at.parts = places.take_floats(std::max(net.splits * kCnnSamples * g.padded_features,
                                         n * g.filters2 * (g.filters1 * g.taps + 1)));
  return places.end();
}

}  // namespace

bool plan_small_cnn(SmallCnn& net, const DeviceLimits& device) {
  CnnGeometry& g = net.g;
  fill_geometry(g);
  net.splits = std::clamp(kCnnThreads / (g.padded_features / 4), 1, std::min(8, g.hidden));
  const int fair = (g.batch + device.multiprocessors - 1) / device.multiprocessors;
  const auto room = static_cast<int>(device.shared_bytes_per_block);
  int needed = 0;
  for (net.samples = std::min(fair, kCnnSamples); net.samples > 0; --net.samples) {
    needed = fill_places(net);
    if (needed <= room) break;
  }
  if (net.samples == 0) return false;
  const int row_bytes = g.padded_features * 4;
  const int rows = (room - net.at.dense_weights) / row_bytes;
  net.resident = std::min(rows, g.hidden);
  net.shared_bytes = std::max(needed, net.at.dense_weights + net.resident * row_bytes);
  net.blocks = std::min((g.batch + net.samples - 1) / net.samples, device.multiprocessors);
  return true;
}

}  // namespace ridgeline::cuda
