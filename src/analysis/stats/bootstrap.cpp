#include "analysis/stats/bootstrap.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "analysis/stats/distributions.h"
#include "analysis/stats/summary.h"
#include "base/error.h"

namespace ridgeline {
namespace {

constexpr std::size_t kFewUnits = 6, kManyUnits = 200, kPieces = 30;
constexpr std::size_t kLongestLag = 1000;  // keeps 200,000 samples below a second
constexpr std::uint64_t kResamplingKey = 0x7265'7361'6D70'6C65ULL;

// Neighbouring equal blocks as one number each, in order.
std::vector<std::size_t> block_numbers(std::span<const std::int64_t> block) {
  std::vector<std::size_t> numbers(block.size());
  for (std::size_t i = 1; i < block.size(); ++i) {
    numbers[i] = numbers[i - 1] + (block[i] != block[i - 1] ? 1 : 0);
  }
  return numbers;
}

// Every block in pieces of at least `length` samples.
UnitLabels cut(const std::vector<std::size_t>& numbers, std::size_t length) {
  UnitLabels labels;
  labels.pieces = true;
  labels.unit.reserve(numbers.size());
  for (std::size_t begin = 0; begin < numbers.size();) {
    std::size_t end = begin;
    while (end < numbers.size() && numbers[end] == numbers[begin]) ++end;
    const std::size_t size = end - begin, pieces = std::max<std::size_t>(size / length, 1);
    for (std::size_t i = 0; i < size; ++i) {
      labels.unit.push_back(labels.count + static_cast<std::int32_t>(i * pieces / size));
    }
    labels.count += static_cast<std::int32_t>(pieces);
    begin = end;
  }
  return labels;
}

UnitLabels join(const std::vector<std::size_t>& numbers, std::size_t units) {
  UnitLabels labels;
  const std::size_t blocks = numbers.back() + 1;
  for (const std::size_t number : numbers) {
    labels.unit.push_back(static_cast<std::int32_t>(number * units / blocks));
  }
  labels.count = static_cast<std::int32_t>(units);
  return labels;
}

// Whether the pieces of one block are more alike than those of different blocks: the ratio of the
// mean squares of their medians between and within blocks, 1 on average where they are not.
bool blocks_differ(std::span<const double> samples, const std::vector<std::size_t>& numbers,
                   const UnitLabels& pieces) {
  std::vector<std::vector<double>> medians(numbers.back() + 1);
  for (std::size_t begin = 0; begin < samples.size();) {
    std::size_t end = begin;
    while (end < samples.size() && pieces.unit[end] == pieces.unit[begin]) ++end;
    medians[numbers[begin]].push_back(median_of(samples.subspan(begin, end - begin)));
    begin = end;
  }
  double all = 0.0;
  for (const auto& block : medians) all = std::accumulate(block.begin(), block.end(), all);
  all /= static_cast<double>(pieces.count);
  double between = 0.0, within = 0.0;
  for (const auto& block : medians) {
    const auto count = static_cast<double>(block.size());
    const double mean = std::accumulate(block.begin(), block.end(), 0.0) / count;
    between += count * (mean - all) * (mean - all);
    for (const double median : block) within += (median - mean) * (median - mean);
  }
  const double free_between = static_cast<double>(medians.size()) - 1.0;
  const double free_within = static_cast<double>(pieces.count) - free_between - 1.0;
  return free_between > 0.0 && free_within > 0.0 &&
         between / free_between > 2.0 * within / free_within;
}

}  // namespace

double correlation_length(std::span<const double> samples) {
  const std::size_t n = samples.size();
  if (n < 4) return 1.0;
  const double median = median_of(samples);
  // Halves where a sample equals the median, so that tied samples lean to no side.
  std::vector<float> above(n);
  double mean = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    above[i] = samples[i] > median ? 1.0F : samples[i] < median ? 0.0F : 0.5F;
    mean += static_cast<double>(above[i]) / static_cast<double>(n);
  }
  double variance = 0.0;
  for (float& a : above) {
    a -= static_cast<float>(mean);
    variance += static_cast<double>(a) * static_cast<double>(a);
  }
  if (variance <= 0.0) return 1.0;
  // The sum ends where its terms are noise: at five times its own value (Sokal's window).
  const std::size_t longest = std::min(n / 2, kLongestLag);
  double length = 1.0;
  for (std::size_t lag = 1; lag < longest && static_cast<double>(lag) <= 5.0 * length; ++lag) {
    double sum = 0.0;
    for (std::size_t i = lag; i < n; ++i) sum += static_cast<double>(above[i] * above[i - lag]);
    length += 2.0 * sum / variance;
    if (length < 1.0) return 1.0;
  }
  return length;
}

UnitLabels unit_labels(std::span<const double> samples, std::span<const std::int64_t> block) {
  ensure(samples.size() == block.size() && !samples.empty(), "{} samples in {} blocks' labels",
         samples.size(), block.size());
  const std::vector<std::size_t> numbers = block_numbers(block);
  const std::size_t blocks = numbers.back() + 1;
  const double correlated = correlation_length(samples);
  if (blocks < kFewUnits) {
    const std::size_t whole = samples.size() / kPieces;
    const auto long_enough = static_cast<std::size_t>(std::ceil(4.0 * correlated));
    UnitLabels pieces = cut(numbers, std::max(long_enough, whole));
    return blocks_differ(samples, numbers, pieces) ? join(numbers, blocks) : pieces;
  }
  const double per_block = static_cast<double>(samples.size()) / static_cast<double>(blocks);
  std::size_t units = std::min(blocks, kManyUnits);
  if (2.0 * correlated > per_block) {
    const double fitting = static_cast<double>(samples.size()) / (3.0 * correlated);
    units = std::min(units, std::max(static_cast<std::size_t>(fitting), kFewUnits));
  }
  return join(numbers, units);
}

MedianResampler::MedianResampler(std::span<const double> samples, const UnitLabels& labels)
    : units_(labels.count), samples_(static_cast<std::size_t>(labels.count)) {
  ensure(!samples.empty() && samples.size() == labels.unit.size(), "{} samples with {} labels",
         samples.size(), labels.unit.size());
  const std::size_t n = samples.size(), units = samples_.size();
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return samples[a] < samples[b] || (samples[a] == samples[b] && a < b);
  });
  sorted_.reserve(n);
  unit_.reserve(n);
  before_.reserve((n / kCell + 1) * units);
  std::vector<std::int32_t> seen(units);
  for (std::size_t rank = 0; rank < n; ++rank) {
    if (rank % kCell == 0) before_.insert(before_.end(), seen.begin(), seen.end());
    const std::int32_t unit = labels.unit[order[rank]];
    sorted_.push_back(samples[order[rank]]);
    unit_.push_back(unit);
    ++seen[static_cast<std::size_t>(unit)];
  }
  std::copy(seen.begin(), seen.end(), samples_.begin());
}

std::int64_t MedianResampler::count_before(std::size_t cell,
                                           std::span<const std::int32_t> times) const {
  const std::int32_t* row = before_.data() + cell * times.size();
  std::int64_t count = 0;
  for (std::size_t u = 0; u < times.size(); ++u) {
    count += std::int64_t{times[u]} * std::int64_t{row[u]};
  }
  return count;
}

double MedianResampler::median(std::span<const std::int32_t> times) const {
  std::int64_t total = 0;
  for (std::size_t u = 0; u < samples_.size(); ++u) total += std::int64_t{times[u]} * samples_[u];
  ensure(total > 0, "a median of no samples");
  // The two middle places, from 0; the same one where the number is odd.
  const std::int64_t first = (total - 1) / 2, second = total / 2;
  // The last cell that has no more than `first` samples before it.
  std::size_t low = 0, high = (sorted_.size() - 1) / kCell;
  while (low < high) {
    const std::size_t middle = (low + high + 1) / 2;
    if (count_before(middle, times) <= first) {
      low = middle;
    } else {
      high = middle - 1;
    }
  }
  std::int64_t passed = count_before(low, times);
  std::size_t rank = low * kCell;
  const auto value_at = [&](std::int64_t place) {
    for (;; ++rank) {
      const std::int64_t here = times[static_cast<std::size_t>(unit_[rank])];
      if (passed + here > place) return sorted_[rank];
      passed += here;
    }
  };
  const double lower = value_at(first);
  return (lower + value_at(second)) / 2.0;
}

std::uint32_t UnitDraw::below(std::uint32_t bound) {
  if (used_ == block_.size()) {
    block_ = philox(kResamplingKey, counter_++, replicate_);
    used_ = 0;
  }
  // With a few hundred units the bias of this scaling is below one in ten million.
  return static_cast<std::uint32_t>((std::uint64_t{block_[used_++]} * bound) >> 32);
}

void UnitDraw::draw(std::span<std::int32_t> times) {
  std::fill(times.begin(), times.end(), 0);
  const auto units = static_cast<std::uint32_t>(times.size());
  for (std::uint32_t i = 0; i < units; ++i) ++times[below(units)];
}

double small_sample_stretch(double units, double degrees, double confidence) {
  const double p = 0.5 + confidence / 2.0;
  return student_quantile(p, degrees) / normal_quantile(p) * std::sqrt(units / (units - 1.0));
}

MedianInterval block_bootstrap(std::span<const double> samples,
                               std::span<const std::int64_t> block) {
  const UnitLabels labels = unit_labels(samples, block);
  if (labels.pieces && labels.count < static_cast<std::int32_t>(kFewUnits)) {
    return median_interval(samples, 2.0 * correlation_length(samples));
  }
  const double median = median_of(samples);
  const MedianResampler resampler(samples, labels);
  std::vector<std::int32_t> times(static_cast<std::size_t>(labels.count));
  std::vector<double> medians;
  medians.reserve(kReplicates);
  for (std::uint64_t replicate = 0; replicate < kReplicates; ++replicate) {
    UnitDraw(replicate).draw(times);
    medians.push_back(resampler.median(times));
  }
  constexpr double kConfidence = 0.95, kTail = 50.0 * (1.0 - kConfidence);
  const double units = labels.count;
  const double stretch = small_sample_stretch(units, units - 1.0, kConfidence);
  const double low = std::min(percentile(medians, kTail), median);
  const double high = std::max(percentile(medians, 100.0 - kTail), median);
  // Times are stretched as factors: with few units a difference would lead below zero.
  if (low > 0.0) {
    return {median, median * std::pow(low / median, stretch),
            median * std::pow(high / median, stretch)};
  }
  return {median, median + stretch * (low - median), median + stretch * (high - median)};
}

}  // namespace ridgeline
