#include "data/dataset.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/philox.h"
#include "base/text.h"

namespace ridgeline {
namespace {

// No epoch has these numbers, so that held-out samples and limits have shuffles of their own.
constexpr std::uint64_t kHoldOutEpoch = UINT64_MAX, kLimitEpoch = UINT64_MAX - 1;

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

// The samples that have this mark.
Dataset part_of(const Dataset& data, std::span<const char> marks, char mark) {
  Dataset part = empty_copy(data);
  const auto count = static_cast<std::size_t>(std::count(marks.begin(), marks.end(), mark));
  part.labels.reserve(count);
  part.image_numbers.reserve(data.images != nullptr ? count : 0);
  part.pixels.reserve(data.images != nullptr ? 0 : count * data.sample_bytes());
  for (std::size_t i = 0; i < marks.size(); ++i) {
    if (marks[i] != mark) continue;
    part.labels.push_back(data.labels[i]);
    if (data.images != nullptr) {
      part.image_numbers.push_back(data.image_numbers[i]);
      continue;
    }
    const std::span<const std::uint8_t> sample = data.sample(static_cast<std::int64_t>(i));
    part.pixels.insert(part.pixels.end(), sample.begin(), sample.end());
  }
  return part;
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
  if (count < 1)
    bad_input("{}: cannot take {} samples; the limit must be at least 1", data.name, count);
  if (count >= data.count()) return data;
  std::vector<std::int32_t> order(data.labels.size());
  shuffled_order(order, 0, kLimitEpoch);
  // Each class places its samples evenly between 0 and 1; the first `count` of all are taken.
  std::vector<double> sizes(static_cast<std::size_t>(data.classes)), ranks(sizes);
  for (const std::int32_t label : data.labels) sizes[static_cast<std::size_t>(label)] += 1.0;
  std::vector<std::pair<double, std::size_t>> places;
  for (const std::int32_t sample : order) {
    const auto label = static_cast<std::size_t>(data.labels[static_cast<std::size_t>(sample)]);
    places.emplace_back((ranks[label] + 0.5) / sizes[label], static_cast<std::size_t>(sample));
    ranks[label] += 1.0;
  }
  std::stable_sort(places.begin(), places.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<char> taken(data.labels.size(), 0);
  for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) taken[places[i].second] = 1;
  return part_of(data, taken, 1);
}

std::string limit_note(const Dataset& data, std::int64_t count) {
  if (count <= data.count()) return {};
  return fmt::format("note: --limit {}: the data has {} samples; all of them are taken", count,
                     count_text(data.count()));
}

Split hold_out(const Dataset& data, std::int64_t count, std::uint64_t seed) {
  if (count < 1 || count >= data.count()) {
    bad_input("{}: cannot hold out {} of {} samples; the number must be between 1 and {}",
              data.name, count, data.count(), data.count() - 1);
  }
  std::vector<std::int32_t> order(data.labels.size());
  shuffled_order(order, seed, kHoldOutEpoch);
  std::vector<char> held(data.labels.size(), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    held[static_cast<std::size_t>(order[static_cast<std::size_t>(i)])] = 1;
  }
  return {part_of(data, held, 0), part_of(data, held, 1)};
}

Split hold_out_fraction(const Dataset& data, double fraction, std::uint64_t seed) {
  if (!(fraction > 0.0 && fraction < 1.0)) {
    bad_input("{}: cannot hold out a share of {}; it must be between 0 and 1", data.name, fraction);
  }
  return hold_out(data, std::llround(fraction * static_cast<double>(data.count())), seed);
}

}  // namespace ridgeline
