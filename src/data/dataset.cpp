#include "data/dataset.h"

#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/philox.h"
#include "base/text.h"

namespace ridgeline {
namespace {

// No epoch has this number, so that held-out samples have a shuffle of their own.
constexpr std::uint64_t kHoldOutEpoch = UINT64_MAX;

Dataset empty_copy(const Dataset& data) {
  Dataset copy;
  copy.name = data.name;
  copy.source = data.source;
  copy.channels = data.channels;
  copy.height = data.height;
  copy.width = data.width;
  copy.classes = data.classes;
  copy.class_names = data.class_names;
  copy.images = data.images;
  copy.photos = data.photos;
  return copy;
}

void reserve(Dataset& data, std::int64_t count) {
  data.labels.reserve(static_cast<std::size_t>(count));
  if (data.images != nullptr) {
    data.image_numbers.reserve(static_cast<std::size_t>(count));
  } else {
    data.pixels.reserve(static_cast<std::size_t>(count) * data.sample_bytes());
  }
}

}  // namespace

std::string Dataset::text() const {
  return fmt::format("{}: {}, {} samples of {}x{}x{}, {} classes", name, source,
                     count_text(count()), channels, height, width, classes);
}

void shuffled_order(std::span<std::int32_t> order, std::uint64_t seed, std::uint64_t epoch) {
  std::iota(order.begin(), order.end(), 0);
  PhiloxSequence random(seed, RandomStream::data_order, epoch);
  for (std::size_t last = order.size(); last > 1; --last) {
    std::swap(order[last - 1], order[random.below(last)]);
  }
}

Dataset limit(Dataset data, std::int64_t count) {
  if (count < 1 || count > data.count()) {
    bad_input("{}: cannot take the first {} samples; the limit must lie between 1 and {}",
              data.name, count, data.count());
  }
  data.labels.resize(static_cast<std::size_t>(count));
  if (data.images != nullptr) {
    data.image_numbers.resize(static_cast<std::size_t>(count));
  } else {
    data.pixels.resize(static_cast<std::size_t>(count) * data.sample_bytes());
  }
  return data;
}

Split hold_out(const Dataset& data, std::int64_t count, std::uint64_t seed) {
  if (count < 1 || count >= data.count()) {
    bad_input("{}: cannot hold out {} of {} samples; the number must lie between 1 and {}",
              data.name, count, data.count(), data.count() - 1);
  }
  std::vector<std::int32_t> order(data.labels.size());
  shuffled_order(order, seed, kHoldOutEpoch);
  std::vector<char> held(data.labels.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    held[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = 1;
  }
  Split split{empty_copy(data), empty_copy(data)};
  reserve(split.train, data.count() - count);
  reserve(split.test, count);
  for (std::size_t i = 0; i < held.size(); ++i) {
    Dataset& part = held[i] != 0 ? split.test : split.train;
    part.labels.push_back(data.labels[i]);
    if (data.images != nullptr) {
      part.image_numbers.push_back(data.image_numbers[i]);
      continue;
    }
    const std::span<const std::uint8_t> sample = data.sample(static_cast<std::int64_t>(i));
    part.pixels.insert(part.pixels.end(), sample.begin(), sample.end());
  }
  return split;
}

Split hold_out_fraction(const Dataset& data, double fraction, std::uint64_t seed) {
  if (!(fraction > 0.0 && fraction < 1.0)) {
    bad_input("{}: cannot hold out a share of {}; it must lie between 0 and 1", data.name,
              fraction);
  }
  return hold_out(data, std::llround(fraction * static_cast<double>(data.count())), seed);
}

}  // namespace ridgeline
