#include "data/sample_reader.h"

#include <algorithm>

#include "base/error.h"
#include "data/loader.h"

namespace ridgeline {

SampleReader::SampleReader(const Dataset& data, const SampleReaderOptions& options)
    : data_(data), options_(options), workers_(static_cast<std::size_t>(options.workers)) {
  if (data.channels != 1 && data.channels != 3) {
    bad_input("{}: images of {} channels cannot be cropped or resized; only 1 or 3", data.name,
              data.channels);
  }
}

void SampleReader::read_image(Worker& worker, std::int32_t sample, const SampleRequest& request,
                              const Target& target) const {
  const TransformRequest transform{
      .target = {static_cast<int>(data_.height), static_cast<int>(data_.width)},
      .channels = static_cast<int>(data_.channels),
      .crop = options_.crop,
      .seed = options_.seed,
      .epoch = request.epoch,
      .sample = request.sample};
  if (data_.images == nullptr) {
    const StoredImage image{.bytes = data_.sample(sample),
                            .decoded = true,
                            .channels = static_cast<int>(data_.channels),
                            .height = static_cast<int>(data_.height),
                            .width = static_cast<int>(data_.width)};
    transform_image(worker.decoder, worker.resizer, image, data_.name, transform, worker.planes,
                    target.pixels);
    return;
  }
  const std::int32_t number = data_.image_numbers[static_cast<std::size_t>(sample)];
  const StoredImage image = data_.images->fetch(number, worker.bytes);
  if (target.place != nullptr && target.place->take(target.at, image, transform)) return;
  transform_image(worker.decoder, worker.resizer, image, data_.images->name(number), transform,
                  worker.planes, target.pixels);
}

std::int32_t SampleReader::read(const SampleRequest& request, std::span<std::uint8_t> pixels) {
  return read_into(request, {.pixels = pixels});
}

std::int32_t SampleReader::read(const SampleRequest& request, BatchPlace& place,
                                const PlaceRow& at) {
  return read_into(request, {.pixels = place.room(at), .place = &place, .at = at});
}

std::int32_t SampleReader::read_into(const SampleRequest& request, const Target& target) {
  Worker& worker = workers_[static_cast<std::size_t>(request.worker)];
  const std::int64_t count = data_.count();
  for (std::int64_t i = 0; i < count; ++i) {
    const auto sample = static_cast<std::int32_t>((request.sample + i) % count);
    try {
      read_image(worker, sample, request, target);
      return data_.labels[static_cast<std::size_t>(sample)];
    } catch (const Error& error) {
      if (options_.strict || error.kind() != ErrorKind::bad_input) throw;
      note_broken(sample, error.what());
    }
  }
  bad_input("{}: not one of the {} images can be decoded; the first one: {}", data_.name, count,
            broken().front().reason);
}

void SampleReader::note_broken(std::int32_t sample, std::string reason) {
  const std::scoped_lock lock(mutex_);
  const auto at = std::lower_bound(
      broken_.begin(), broken_.end(), sample,
      [](const BrokenImage& image, std::int32_t number) { return image.sample < number; });
  if (at != broken_.end() && at->sample == sample) return;
  broken_.insert(at, {sample, std::move(reason)});
}

std::vector<BrokenImage> SampleReader::broken() const {
  const std::scoped_lock lock(mutex_);
  return broken_;
}

bool needs_reader(const Dataset& data, bool crop) { return data.images != nullptr || crop; }

bool has_encoded_images(const Dataset& data) {
  if (data.empty() || data.images == nullptr) return false;
  std::vector<std::uint8_t> bytes;
  try {
    return !data.images->fetch(data.image_numbers.front(), bytes).decoded;
  } catch (const Error&) {
    return true;  // a file that is not there; told where it is read
  }
}

void check_readable(const Dataset& data) {
  if (data.empty() || data.images == nullptr) return;
  std::vector<std::uint8_t> pixels(data.sample_bytes());
  (void)SampleReader(data, {}).read({}, pixels);
}

SmallImages small_images(const Dataset& data) {
  constexpr std::int64_t kSeen = 64;
  SmallImages found;
  if (data.images == nullptr) return found;
  ImageDecoder decoder;
  std::vector<std::uint8_t> bytes;
  for (std::int64_t i = 0; i < std::min(kSeen, data.count()); ++i) {
    const std::int64_t sample = i * data.count() / std::min(kSeen, data.count());
    const std::int32_t number = data.image_numbers[static_cast<std::size_t>(sample)];
    try {
      const StoredImage image = data.images->fetch(number, bytes);
      FrameSize size{image.height, image.width};
      if (!image.decoded) {
        const ImageHeader header = decoder.open(image.bytes, data.images->name(number));
        size = {header.height, header.width};
      }
      ++found.seen;
      if (size.height >= data.height && size.width >= data.width) continue;
      if (found.small++ == 0) found.first = size;
    } catch (const Error&) {
      continue;  // told where it is decoded
    }
  }
  return found;
}

Dataset in_memory(const Dataset& data, int workers) {
  if (data.images == nullptr) return data;
  Dataset whole = data;
  whole.images = nullptr;
  whole.image_numbers.clear();
  whole.labels.clear();
  Loader loader(data, {.batch = std::min<std::int64_t>(64, data.count()), .workers = workers});
  loader.start_epoch(0);
  while (const std::optional<Batch> batch = loader.next()) {
    whole.pixels.insert(whole.pixels.end(), batch->pixels.begin(), batch->pixels.end());
    whole.labels.insert(whole.labels.end(), batch->labels.begin(), batch->labels.end());
  }
  return whole;
}

}  // namespace ridgeline
