#pragma once

// Labelled images, as the file formats give them and as the loader takes them: in memory as pixels,
// or in a source from which they are decoded when they are asked for.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "data/image_source.h"

namespace ridgeline {

struct Dataset {
  std::string name;    // "fashion-mnist"
  std::string source;  // for people: "Fashion-MNIST (Debian dataset-fashion-mnist)"
  std::int64_t channels = 1, height = 0, width = 0;  // as the network gets them
  std::int32_t classes = 0;
  std::vector<std::string> class_names;  // empty, or one for each class
  std::vector<std::int32_t> labels;      // count, each in [0, classes)
  // In memory: count x channels x height x width, contiguous; empty where `images` has them.
  std::vector<std::uint8_t> pixels;
  std::shared_ptr<const ImageSource> images;
  std::vector<std::int32_t> image_numbers;  // count, of each sample in `images`
  bool photos = false;  // colour images that are usually cropped and normalised as ImageNet's

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(labels.size()); }
  [[nodiscard]] bool empty() const { return labels.empty(); }
  [[nodiscard]] std::size_t sample_bytes() const {
    return static_cast<std::size_t>(channels * height * width);
  }
  // REQUIRES: the pixels are in memory.
  [[nodiscard]] std::span<const std::uint8_t> sample(std::int64_t index) const {
    return std::span(pixels).subspan(static_cast<std::size_t>(index) * sample_bytes(),
                                     sample_bytes());
  }
  // "fashion-mnist: Fashion-MNIST (Debian dataset-fashion-mnist), 60,000 samples of 1x28x28, 10
  // classes"
  [[nodiscard]] std::string text() const;
};

// A dataset that comes without a test part leaves `test` empty.
struct Split {
  Dataset train, test;
  std::vector<std::string> skipped = {};  // image files that are of no use here
};

// Puts 0, 1, 2, ... into `order` and shuffles it (Fisher-Yates). A pure function of the size, the
// seed and the epoch.
void shuffled_order(std::span<std::int32_t> order, std::uint64_t seed, std::uint64_t epoch);

// A random sample of `count`, the same every time, in the order of the file. Each class keeps its
// share of the samples as nearly as whole numbers allow. All samples where there are no more than
// that; fewer than one is a bad_input Error.
[[nodiscard]] Dataset limit(Dataset data, std::int64_t count);

// Says that there are fewer samples than `count`, or nothing.
[[nodiscard]] std::string limit_note(const Dataset& data, std::int64_t count);

// Takes `count` samples out of `data`: those that a shuffle with `seed` puts first. Both parts keep
// the order of the file; the samples taken out are the `test` part. Bad_input unless each part
// keeps at least one sample.
[[nodiscard]] Split hold_out(const Dataset& data, std::int64_t count, std::uint64_t seed);

// The same with a share of the samples in (0, 1), rounded to the nearest count.
[[nodiscard]] Split hold_out_fraction(const Dataset& data, double fraction, std::uint64_t seed);

}  // namespace ridgeline
