#pragma once

// The sums of the reference's convolutions, several at a time and on all cores. Convolutions are
// nearly all of a network's work, and whole networks are compared in double.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "base/parallel.h"

namespace ridgeline {

// A position such as (channel, kernel row, kernel column), or how many there are along each.
struct Index3 {
  std::int64_t a = 1, b = 1, c = 1;

  [[nodiscard]] std::int64_t count() const { return a * b * c; }
  // The position with this number in row-major order.
  [[nodiscard]] Index3 at(std::int64_t number) const {
    return {number / (b * c), number / c % b, number % c};
  }
};

// For each group, row and column: the sum over all terms of left times right.
struct SumExtents {
  std::int64_t groups = 1, rows = 1;
  Index3 columns, terms;
};

// `left` has one row of terms after the other, for all groups. right(group, term, column) gives an
// element; write(group, row, column, sum) takes a result. Every sum is taken in the order of its
// terms, so the results do not depend on the threads. Elements of the right are fetched once for
// up to kRows rows, and kColumns sums grow together: one value of the left serves them all.
template <typename Right, typename Write>
void for_each_sum(const SumExtents& extents, const std::vector<double>& left, const Right& right,
                  const Write& write) {
  constexpr std::int64_t kColumns = 16, kRows = 64, kTerms = 256;
  const std::int64_t columns = extents.columns.count(), terms = extents.terms.count();
  const std::int64_t column_blocks = (columns + kColumns - 1) / kColumns;
  const std::int64_t row_blocks = (extents.rows + kRows - 1) / kRows;

  const auto block = [&](std::int64_t group, std::int64_t first_row, std::int64_t first_column) {
    const std::int64_t rows = std::min(kRows, extents.rows - first_row);
    const std::int64_t width = std::min(kColumns, columns - first_column);
    std::array<Index3, kColumns> column;
    for (std::int64_t i = 0; i < width; ++i) {
      column[static_cast<std::size_t>(i)] = extents.columns.at(first_column + i);
    }
    double sums[kRows][kColumns] = {};
    double fetched[kTerms][kColumns] = {};
    for (std::int64_t first = 0; first < terms; first += kTerms) {
      const std::int64_t depth = std::min(kTerms, terms - first);
      for (std::int64_t t = 0; t < depth; ++t) {
        const Index3 term = extents.terms.at(first + t);
        for (std::int64_t i = 0; i < width; ++i) {
          fetched[t][i] = right(group, term, column[static_cast<std::size_t>(i)]);
        }
      }
      for (std::int64_t r = 0; r < rows; ++r) {
        const double* factors =
            &left[static_cast<std::size_t>((group * extents.rows + first_row + r) * terms + first)];
        double row[kColumns];
        std::copy_n(sums[r], kColumns, row);
        for (std::int64_t t = 0; t < depth; ++t) {
          for (std::int64_t i = 0; i < kColumns; ++i) row[i] += factors[t] * fetched[t][i];
        }
        std::copy_n(row, kColumns, sums[r]);
      }
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = 0; i < width; ++i) {
        write(group, first_row + r, column[static_cast<std::size_t>(i)], sums[r][i]);
      }
    }
  };

  parallel_for(extents.groups * row_blocks * column_blocks, 1, [&](auto begin, auto end) {
    for (std::int64_t job = begin; job < end; ++job) {
      const Index3 place = Index3{extents.groups, row_blocks, column_blocks}.at(job);
      block(place.a, place.b * kRows, place.c * kColumns);
    }
  });
}

}  // namespace ridgeline
