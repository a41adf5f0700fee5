// Sums in shared memory, with threads in the place of ranks.

#include "ranks/mpi/shared_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <vector>

namespace ridgeline::mpi {
namespace {

template <typename T>
constexpr Type kType = sizeof(T) == 4                ? Type::f32
                       : std::is_floating_point_v<T> ? Type::f64
                                                     : Type::i64;

template <typename T>
std::vector<T> values_of(int rank, std::int64_t count, int round) {
  std::vector<T> values;
  for (std::int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<T>((i * 7919 + rank * 104729 + round * 31) % 1000003) /
                     static_cast<T>(3));
  }
  return values;
}

// In the order of the ranks.
template <typename T>
std::vector<T> expected_of(int ranks, std::int64_t count, int round, Reduction reduction) {
  std::vector<T> all = values_of<T>(0, count, round);
  for (int rank = 1; rank < ranks; ++rank) {
    const std::vector<T> other = values_of<T>(rank, count, round);
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = reduction == Reduction::sum ? all[i] + other[i] : std::max(all[i], other[i]);
    }
  }
  return all;
}

struct Memory {
  explicit Memory(int ranks) {
    for (int rank = 0; rank < ranks; ++rank) {
      parts.push_back(static_cast<std::byte*>(
          ::operator new (SharedSum::kBytes, std::align_val_t{alignof(Mark)})));
      new (parts.back()) Mark;
    }
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() {
    for (std::byte* part : parts) ::operator delete (part, std::align_val_t{alignof(Mark)});
  }
  std::vector<std::byte*> parts;
};

// Small pieces, pieces that do not divide evenly, whole slots and several of them, in turns.
template <typename T>
void expect_sums(int ranks, Reduction reduction) {
  constexpr auto kSlot = kSlotBytes / static_cast<std::int64_t>(sizeof(T));
  const std::vector<std::int64_t> counts = {1, 1023, 5, kSlot - 1, kSlot + 3, 2 * kSlot + 77, 2, 2};
  Memory memory(ranks);
  std::vector<std::string> wrong(static_cast<std::size_t>(ranks));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      SharedSum sum(rank, ranks, memory.parts.data());
      const auto wait = [](auto done) -> const char* {
        while (!done()) std::this_thread::yield();
        return nullptr;
      };
      for (int round = 0; round < 2; ++round) {
        for (const std::int64_t count : counts) {
          std::vector<T> values = values_of<T>(rank, count, round);
          (void)sum.all_reduce(values.data(), count, kType<T>, reduction, wait);
          if (values == expected_of<T>(ranks, count, round, reduction)) continue;
          wrong[static_cast<std::size_t>(rank)] += std::to_string(count) + ' ';
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& each : wrong) EXPECT_EQ(each, "") << ranks << " ranks";
}

TEST(ThreadsSharedSum, EveryRankGetsTheSumInTheOrderOfTheRanks) {
  for (const int ranks : {1, 2, 3, 5}) {
    expect_sums<float>(ranks, Reduction::sum);
    expect_sums<double>(ranks, Reduction::sum);
    expect_sums<std::int64_t>(ranks, Reduction::sum);
    expect_sums<double>(ranks, Reduction::maximum);
  }
}

TEST(ThreadsSharedSum, AWaitThatFailsIsTold) {
  Memory memory(2);
  SharedSum sum(0, 2, memory.parts.data());
  float value = 1.0F;
  const char* error = sum.all_reduce(&value, 1, Type::f32, Reduction::sum,
                                     [](auto) -> const char* { return "time is up"; });
  EXPECT_STREQ(error, "time is up");
}

}  // namespace
}  // namespace ridgeline::mpi
