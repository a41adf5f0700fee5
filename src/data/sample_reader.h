#pragma once

// Turns a sample of a dataset into the pixels that a network sees: fetches the image, decodes it,
// crops and resizes it. What cannot be decoded is replaced or refused.

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "data/batch_place.h"
#include "data/dataset.h"
#include "data/image_decoder.h"
#include "data/image_transform.h"

namespace ridgeline {

struct SampleRequest {
  std::int32_t sample = 0;  // position in the dataset
  std::int64_t epoch = 0;
  int worker = 0;  // the thread that asks, from 0
};

struct BrokenImage {
  std::int32_t sample = 0;
  std::string reason;  // names the file
};

struct SampleReaderOptions {
  std::uint64_t seed = 0;
  int workers = 1;
  bool crop = false;    // random resized crop, else the transform of evaluation
  bool strict = false;  // a broken image is an error
};

// Several threads may read at once if each has a worker number of its own.
class SampleReader {
 public:
  // REQUIRES: `data` outlives the reader.
  SampleReader(const Dataset& data, const SampleReaderOptions& options);

  // Fills the pixels (channels x height x width) and returns the label. A broken image is replaced
  // by the next readable one of the dataset, with that one's label: which one that is depends on
  // the data alone. Bad_input when there is none, and with `strict` for the first broken one.
  std::int32_t read(const SampleRequest& request, std::span<std::uint8_t> pixels);
  // The same into a row of a place.
  std::int32_t read(const SampleRequest& request, BatchPlace& place, const PlaceRow& at);

  // The broken images seen so far, in the order of the dataset.
  [[nodiscard]] std::vector<BrokenImage> broken() const;

 private:
  struct Worker {
    ImageDecoder decoder;
    Resizer resizer;
    std::vector<std::uint8_t> bytes, planes;
  };

  // Fills the pixels, unless `place` takes the image.
  struct Target {
    std::span<std::uint8_t> pixels;
    BatchPlace* place = nullptr;
    PlaceRow at = {};
  };
  std::int32_t read_into(const SampleRequest& request, const Target& target);
  void read_image(Worker& worker, std::int32_t sample, const SampleRequest& request,
                  const Target& target) const;
  void note_broken(std::int32_t sample, std::string reason);

  const Dataset& data_;
  SampleReaderOptions options_;
  std::vector<Worker> workers_;
  mutable std::mutex mutex_;
  std::vector<BrokenImage> broken_;  // sorted by sample
};

// Whether samples must pass through a SampleReader: images decoded on demand, cropped or resized.
[[nodiscard]] bool needs_reader(const Dataset& data, bool crop);

// Whether samples are decoded from image files when they are asked for.
[[nodiscard]] bool has_encoded_images(const Dataset& data);

// Bad_input unless an image can be decoded. An evaluation would find out too, after an epoch.
void check_readable(const Dataset& data);

// How many of some images, taken from all over the dataset, are smaller than its samples.
struct SmallImages {
  std::int64_t small = 0, seen = 0;
  FrameSize first = {};  // of the small ones
};
[[nodiscard]] SmallImages small_images(const Dataset& data);

// The samples as evaluation sees them, all in memory. For whole batches that stay on a device.
[[nodiscard]] Dataset in_memory(const Dataset& data, int workers);

}  // namespace ridgeline
