#pragma once

// Philox4x32-10, the counter-based generator of Salmon et al. (SC 2011): random numbers are a pure
// function of a key and a counter, so they depend on no order of evaluation, no thread count and no
// device. Every random number of the project comes from here.

#include <array>
#include <cstdint>

namespace ridgeline {

using PhiloxBlock = std::array<std::uint32_t, 4>;

[[nodiscard]] constexpr PhiloxBlock philox(std::uint64_t key, std::uint64_t counter_low,
                                           std::uint64_t counter_high) {
  constexpr std::uint32_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  auto k0 = static_cast<std::uint32_t>(key), k1 = static_cast<std::uint32_t>(key >> 32);
  PhiloxBlock c = {
      static_cast<std::uint32_t>(counter_low), static_cast<std::uint32_t>(counter_low >> 32),
      static_cast<std::uint32_t>(counter_high), static_cast<std::uint32_t>(counter_high >> 32)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p0 = std::uint64_t{kMultiplier0} * c[0];
    const std::uint64_t p1 = std::uint64_t{kMultiplier1} * c[2];
    c = {static_cast<std::uint32_t>(p1 >> 32) ^ c[1] ^ k0, static_cast<std::uint32_t>(p1),
         static_cast<std::uint32_t>(p0 >> 32) ^ c[3] ^ k1, static_cast<std::uint32_t>(p0)};
    k0 += kWeyl0;
    k1 += kWeyl1;
  }
  return c;
}

// What a stream of random numbers is for; part of the key, so that streams never overlap.
enum class RandomStream : std::uint32_t { weights, data_order, augmentation, dropout, synthetic };

[[nodiscard]] constexpr std::uint64_t stream_key(std::uint64_t seed, RandomStream stream) {
  // Spread the stream number over the key (splitmix64's multiplier) so that near seeds stay apart.
  return seed ^ ((static_cast<std::uint64_t>(stream) + 1) * 0x9E3779B97F4A7C15ULL);
}

// Uniform in [0, 1) with 24 bits: exact in float, the same on every device.
[[nodiscard]] constexpr float to_uniform(std::uint32_t bits) {
  return static_cast<float>(bits >> 8) * (1.0F / 16777216.0F);
}

// A plain sequence over one counter half, for code that draws numbers one after the other.
class PhiloxSequence {
 public:
  PhiloxSequence(std::uint64_t seed, RandomStream stream, std::uint64_t substream)
      : key_(stream_key(seed, stream)), substream_(substream) {}

  // Goes on with the block of four numbers that has this number.
  void seek(std::uint64_t block) {
    counter_ = block;
    used_ = 4;
  }
  std::uint32_t next();
  float uniform() { return to_uniform(next()); }
  double uniform_double();  // 53 bits
  double normal();          // mean 0, deviation 1 (Box-Muller)
  // Uniform in [0, bound), without modulo bias. REQUIRES: bound > 0.
  std::uint64_t below(std::uint64_t bound);

 private:
  std::uint64_t key_, substream_, counter_ = 0;
  PhiloxBlock block_{};
  int used_ = 4;
};

}  // namespace ridgeline
