#include "data/synthetic.h"

#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/parallel.h"
#include "base/philox.h"

namespace ridgeline {
namespace {

// Patterns and samples share the stream; patterns take the substreams that no sample reaches.
constexpr std::uint64_t kPatternSubstream = std::uint64_t{1} << 63;
constexpr std::int64_t kCells = 7;  // cells along each side of the image

// Cell greys from 64 to 191 under noise from -64 to 63 stay within a byte without clamping.
std::vector<std::uint8_t> class_pattern(const SyntheticOptions& options, std::int32_t label) {
  PhiloxSequence random(options.seed, RandomStream::synthetic,
                        kPatternSubstream + static_cast<std::uint64_t>(label));
  std::vector<std::uint8_t> pattern;
  std::vector<std::uint8_t> cells(static_cast<std::size_t>(kCells * kCells));
  for (std::int64_t c = 0; c < options.channels; ++c) {
    for (std::uint8_t& cell : cells) cell = static_cast<std::uint8_t>(64 + random.next() % 128);
    for (std::int64_t y = 0; y < options.height; ++y) {
      for (std::int64_t x = 0; x < options.width; ++x) {
        const std::int64_t row = y * kCells / options.height, column = x * kCells / options.width;
        pattern.push_back(cells[static_cast<std::size_t>(row * kCells + column)]);
      }
    }
  }
  return pattern;
}

void add_noise(const std::vector<std::uint8_t>& pattern, std::uint64_t key, std::uint64_t sample,
               std::uint8_t* pixels) {
  std::uint8_t noise[sizeof(PhiloxBlock)];
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::size_t lane = i % sizeof(noise);
    if (lane == 0) {
      const PhiloxBlock block = philox(key, i / sizeof(noise), sample);
      std::memcpy(noise, block.data(), sizeof(noise));
    }
    pixels[i] = static_cast<std::uint8_t>(pattern[i] + noise[lane] / 2 - 64);
  }
}

Dataset make_part(const SyntheticOptions& options,
                  const std::vector<std::vector<std::uint8_t>>& patterns, std::int64_t first,
                  std::int64_t count) {
  Dataset data;
  data.name = "synthetic";
  data.source = fmt::format("patterns and noise from seed {}", options.seed);
  data.channels = options.channels;
  data.height = options.height;
  data.width = options.width;
  data.classes = options.classes;
  data.pixels.resize(static_cast<std::size_t>(count) * data.sample_bytes());
  data.labels.resize(static_cast<std::size_t>(count));
  const std::uint64_t key = stream_key(options.seed, RandomStream::synthetic);
  parallel_for(count, 256, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t sample = first + i;
      const auto label = static_cast<std::int32_t>(sample % options.classes);
      data.labels[static_cast<std::size_t>(i)] = label;
      add_noise(patterns[static_cast<std::size_t>(label)], key, static_cast<std::uint64_t>(sample),
                data.pixels.data() + static_cast<std::size_t>(i) * data.sample_bytes());
    }
  });
  return data;
}

}  // namespace

Split make_synthetic(const SyntheticOptions& options) {
  std::vector<std::vector<std::uint8_t>> patterns;
  for (std::int32_t label = 0; label < options.classes; ++label) {
    patterns.push_back(class_pattern(options, label));
  }
  return {make_part(options, patterns, 0, options.count),
          make_part(options, patterns, options.count, options.test_count)};
}

}  // namespace ridgeline
