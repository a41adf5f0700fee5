// Every reader of files from outside, over its seeds and thousands of mutations of them: it may
// refuse a file with an Error, and nothing worse; and a small file never makes it allocate much.

#include <gtest/gtest.h>

#include "base/philox.h"
#include "support/allocations.h"
#include "support/fuzz_targets.h"

namespace ridgeline::testing {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr int kMutations = 2000;  // of each seed
constexpr std::int64_t kFreeBytes = 4 << 20;

// One to four changes: a bit, a byte, a run, a number, a cut, a piece moved or doubled.
Bytes mutated(const Bytes& seed, PhiloxSequence& random) {
  Bytes bytes = seed;
  const std::uint64_t changes = 1 + random.below(4);
  for (std::uint64_t i = 0; i < changes && !bytes.empty(); ++i) {
    const std::size_t at = random.below(bytes.size());
    const std::size_t length = 1 + random.below(std::min<std::size_t>(bytes.size() - at, 16));
    const auto begin = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto end = begin + static_cast<std::ptrdiff_t>(length);
    switch (random.below(7)) {
      case 0:
        bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ 1U << random.below(8));
        break;
      case 1:
        bytes[at] = static_cast<std::uint8_t>(random.next());
        break;
      case 2:
        std::fill(begin, end, random.below(2) == 0 ? std::uint8_t{0} : std::uint8_t{0xFF});
        break;
      case 3:
        bytes[at] = static_cast<std::uint8_t>(bytes[at] + 1);
        break;
      case 4:
        bytes.resize(at);
        break;
      case 5:
        bytes.erase(begin, end);
        break;
      default: {
        const Bytes piece(begin, end);
        const auto to = static_cast<std::ptrdiff_t>(random.below(bytes.size() + 1));
        bytes.insert(bytes.begin() + to, piece.begin(), piece.end());
      }
    }
  }
  return bytes;
}

class FuzzCorpus : public ::testing::TestWithParam<FuzzTarget> {};

TEST_P(FuzzCorpus, ReadersRefuseAndNothingWorse) {
  const FuzzTarget& target = GetParam();
  std::uint64_t number = 0;
  for (const Bytes& seed : target.seeds()) {
    PhiloxSequence random(1, RandomStream::synthetic, number++);
    for (int i = 0; i <= kMutations; ++i) {
      const Bytes bytes = i == 0 ? seed : mutated(seed, random);
      const std::int64_t before = allocated_bytes();
      ASSERT_NO_THROW(run_target(target, bytes)) << "seed " << number - 1 << ", mutation " << i;
      const auto size = static_cast<std::int64_t>(bytes.size());
      ASSERT_LE(allocated_bytes() - before, kFreeBytes + target.bytes_per_byte * size)
          << "seed " << number - 1 << ", mutation " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, FuzzCorpus,
                         ::testing::ValuesIn(fuzz_targets().begin(), fuzz_targets().end()),
                         [](const auto& target) { return std::string(target.param.name); });

}  // namespace
}  // namespace ridgeline::testing
