#pragma once

// Sums over the ranks of one machine in memory that they share. A message is cut into pieces. Each
// rank puts its piece into its slot, adds its part of the piece from all slots in the order of the
// ranks, and takes the other parts from those who added them: two waits for each piece, whatever
// the number of ranks, where a ring takes two for each rank.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "ranks/mpi/module.h"

namespace ridgeline::mpi {

// Bytes of a slot. Each rank has two: who has written a piece has read the one before, so that the
// slot of the one before that is free.
inline constexpr std::int64_t kSlotBytes = 512 << 10;
// Pieces up to this size every rank adds by itself: one wait less.
inline constexpr std::int64_t kSmallBytes = 4 << 10;

// How far a rank has come, in pieces since the beginning.
struct alignas(128) Mark {
  std::atomic<std::uint64_t> written{0}, added{0};
};

class SharedSum {
 public:
  // What each rank's memory must have room for.
  static constexpr std::int64_t kBytes = sizeof(Mark) + 2 * kSlotBytes;

  // `memory`: of each rank. REQUIRES: its first bytes are zero before any rank sums.
  SharedSum(int rank, int size, std::byte** memory) : rank_(rank), size_(size), memory_(memory) {}

  // In place. `wait`: const char* wait(done) returns when done() holds, or why it does not.
  template <typename Wait>
  const char* all_reduce(void* data, std::int64_t count, Type type, Reduction reduction,
                         Wait&& wait) {
    switch (type) {
      case Type::f32:
        return in_pieces(static_cast<float*>(data), count, reduction, wait);
      case Type::f64:
        return in_pieces(static_cast<double*>(data), count, reduction, wait);
      case Type::i64:
        return in_pieces(static_cast<std::int64_t*>(data), count, reduction, wait);
    }
    return "no type of these";
  }

 private:
  // Stretches of a cache line or more, so that no line has two writers.
  static constexpr std::int64_t kAligned = 32;  // elements

  [[nodiscard]] Mark& mark(int rank) const { return *reinterpret_cast<Mark*>(memory_[rank]); }
  template <typename T>
  [[nodiscard]] T* slot(int rank) const {
    return reinterpret_cast<T*>(memory_[rank] + sizeof(Mark) +
                                static_cast<std::int64_t>(piece_ % 2) * kSlotBytes);
  }

  template <typename T, typename Wait>
  const char* in_pieces(T* data, std::int64_t count, Reduction reduction, Wait& wait) {
    constexpr auto kSize = static_cast<std::int64_t>(sizeof(T));
    constexpr std::int64_t kMost = kSlotBytes / kSize;
    for (std::int64_t first = 0; first < count; first += kMost) {
      const std::int64_t some = count - first < kMost ? count - first : kMost;
      ++piece_;
      std::memcpy(slot<T>(rank_), data + first, static_cast<std::size_t>(some * kSize));
      mark(rank_).written.store(piece_, std::memory_order_release);
      const auto all_at = [&](std::atomic<std::uint64_t> Mark::*step) {
        return wait([&] {
          for (int rank = 0; rank < size_; ++rank) {
            if ((mark(rank).*step).load(std::memory_order_acquire) < piece_) return false;
          }
          return true;
        });
      };
      if (const char* error = all_at(&Mark::written)) return error;
      if (some * kSize <= kSmallBytes) {
        add(data + first, 0, some, reduction);
        continue;
      }
      const Part own = part(rank_, some);
      add(slot<T>(rank_) + own.begin, own.begin, own.end - own.begin, reduction);
      mark(rank_).added.store(piece_, std::memory_order_release);
      if (const char* error = all_at(&Mark::added)) return error;
      for (int rank = 0; rank < size_; ++rank) {
        const Part of = part(rank, some);
        std::memcpy(data + first + of.begin, slot<T>(rank) + of.begin,
                    static_cast<std::size_t>((of.end - of.begin) * kSize));
      }
    }
    return nullptr;
  }

  struct Part {
    std::int64_t begin = 0, end = 0;
  };
  // Of a piece of so many elements, what falls to a rank to add.
  [[nodiscard]] Part part(int rank, std::int64_t elements) const {
    const std::int64_t each = (elements + size_ - 1) / size_;
    const std::int64_t whole = (each + kAligned - 1) / kAligned * kAligned;
    const std::int64_t begin = whole * rank < elements ? whole * rank : elements;
    return {begin, begin + whole < elements ? begin + whole : elements};
  }

  // dst = what all slots have from `begin` on; dst may lie in this rank's slot.
  template <typename T>
  void add(T* dst, std::int64_t begin, std::int64_t count, Reduction reduction) const {
    constexpr std::int64_t kBlock = 1024;  // stays in the first cache
    T sums[kBlock];
    for (std::int64_t at = 0; at < count; at += kBlock) {
      const std::int64_t some = count - at < kBlock ? count - at : kBlock;
      std::memcpy(sums, slot<T>(0) + begin + at, static_cast<std::size_t>(some) * sizeof(T));
      for (int rank = 1; rank < size_; ++rank) {
        const T* from = slot<T>(rank) + begin + at;
        if (reduction == Reduction::sum) {
          for (std::int64_t i = 0; i < some; ++i) sums[i] += from[i];
        } else {
          for (std::int64_t i = 0; i < some; ++i) sums[i] = sums[i] < from[i] ? from[i] : sums[i];
        }
      }
      std::memcpy(dst + at, sums, static_cast<std::size_t>(some) * sizeof(T));
    }
  }

  int rank_, size_;
  std::byte** memory_;
  std::uint64_t piece_ = 0;
};

}  // namespace ridgeline::mpi
