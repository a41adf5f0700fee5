#include "data/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace ridgeline {
namespace {

// Sample i has the label i % classes and four pixels that tell i.
Dataset numbered(std::int64_t count, std::int32_t classes = 7) {
  Dataset data;
  data.name = "numbered";
  data.height = data.width = 2;
  data.classes = classes;
  for (std::int64_t i = 0; i < count; ++i) {
    data.labels.push_back(static_cast<std::int32_t>(i % classes));
    for (int shift = 0; shift < 32; shift += 8) {
      data.pixels.push_back(static_cast<std::uint8_t>(i >> shift));
    }
  }
  return data;
}

void expect_rows_match(const Batch& batch, const Dataset& data) {
  ASSERT_EQ(batch.samples.size(), static_cast<std::size_t>(batch.rows));
  ASSERT_EQ(batch.labels.size(), batch.samples.size());
  ASSERT_EQ(batch.pixels.size(), batch.samples.size() * data.sample_bytes());
  for (std::size_t row = 0; row < batch.samples.size(); ++row) {
    const std::int32_t sample = batch.samples[row];
    EXPECT_EQ(batch.labels[row], data.labels[static_cast<std::size_t>(sample)]);
    const auto pixels = batch.pixels.subspan(row * data.sample_bytes(), data.sample_bytes());
    const auto expected = data.sample(sample);
    EXPECT_TRUE(std::equal(pixels.begin(), pixels.end(), expected.begin()));
  }
}

struct Epoch {
  std::vector<std::int32_t> samples;
  std::vector<std::int64_t> rows;  // of each batch
};

Epoch run_epoch(Loader& loader, const Dataset& data, std::int64_t epoch) {
  Epoch seen;
  loader.start_epoch(epoch);
  while (const std::optional<Batch> batch = loader.next()) {
    EXPECT_EQ(batch->epoch, epoch);
    EXPECT_EQ(batch->index, static_cast<std::int64_t>(seen.rows.size()));
    expect_rows_match(*batch, data);
    seen.samples.insert(seen.samples.end(), batch->samples.begin(), batch->samples.end());
    seen.rows.push_back(batch->rows);
  }
  EXPECT_EQ(loader.batches(), static_cast<std::int64_t>(seen.rows.size()));
  EXPECT_EQ(loader.rows(), static_cast<std::int64_t>(seen.samples.size()));
  return seen;
}

std::vector<std::int32_t> sorted(std::vector<std::int32_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<std::int32_t> first_numbers(std::size_t count) {
  std::vector<std::int32_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), 0);
  return numbers;
}

template <typename Body>
std::string error_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::bad_input);
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return {};
}

TEST(ThreadsLoader, ShuffledEpochHoldsEverySampleOnce) {
  const Dataset data = numbered(103);
  for (const std::int64_t batch : {1, 8, 50, 103}) {
    Loader loader(data, {.batch = batch, .shuffle = true, .seed = 5});
    const Epoch seen = run_epoch(loader, data, 0);
    EXPECT_EQ(sorted(seen.samples), first_numbers(103)) << "batch " << batch;
    EXPECT_NE(seen.samples, first_numbers(103));
  }
}

TEST(ThreadsLoader, OrderDependsOnSeedAndEpochOnly) {
  const Dataset data = numbered(500);
  Loader a(data, {.batch = 32, .shuffle = true, .seed = 9});
  Loader b(data, {.batch = 7, .shuffle = true, .seed = 9, .prefetch = 5});
  const std::vector<std::int32_t> first = run_epoch(a, data, 0).samples;
  const std::vector<std::int32_t> second = run_epoch(a, data, 1).samples;
  EXPECT_NE(first, second);
  EXPECT_EQ(run_epoch(b, data, 1).samples, second);
  EXPECT_EQ(run_epoch(b, data, 0).samples, first);
  EXPECT_EQ(run_epoch(a, data, 0).samples, first);
  Loader other(data, {.batch = 32, .shuffle = true, .seed = 10});
  EXPECT_NE(run_epoch(other, data, 0).samples, first);
}

TEST(ThreadsLoader, OrderIsTheOneOfShuffledOrder) {
  const Dataset data = numbered(64);
  Loader loader(data, {.batch = 16, .shuffle = true, .seed = 3});
  std::vector<std::int32_t> order(64);
  shuffled_order(order, 3, 4);
  EXPECT_EQ(run_epoch(loader, data, 4).samples, order);
}

TEST(ThreadsLoader, AnEpochBegunInItsMiddleGoesOnAsItWould) {
  const Dataset data = numbered(23);
  for (const bool shuffle : {true, false}) {
    Loader loader(data, {.batch = 5, .shuffle = shuffle, .seed = 4});
    const Epoch whole = run_epoch(loader, data, 3);
    for (std::int64_t first = 0; first <= loader.batches(); ++first) {
      loader.start_epoch(3, first);
      std::vector<std::int32_t> rest;
      while (const std::optional<Batch> batch = loader.next()) {
        expect_rows_match(*batch, data);
        EXPECT_EQ(batch->index, first + static_cast<std::int64_t>(rest.size()) / 5);
        rest.insert(rest.end(), batch->samples.begin(), batch->samples.end());
      }
      const auto skipped = static_cast<std::ptrdiff_t>(std::min<std::int64_t>(5 * first, 23));
      EXPECT_EQ(rest,
                std::vector<std::int32_t>(whole.samples.begin() + skipped, whole.samples.end()));
    }
  }
}

TEST(ThreadsLoader, LastBatchSmaller) {
  const Dataset data = numbered(20);
  Loader loader(data, {.batch = 8, .shuffle = true});
  EXPECT_EQ(run_epoch(loader, data, 0).rows, (std::vector<std::int64_t>{8, 8, 4}));
}

TEST(ThreadsLoader, LastBatchDropped) {
  const Dataset data = numbered(20);
  Loader loader(data, {.batch = 8, .shuffle = true, .last_batch = LastBatch::drop});
  const Epoch seen = run_epoch(loader, data, 0);
  EXPECT_EQ(seen.rows, (std::vector<std::int64_t>{8, 8}));
  EXPECT_EQ(std::set<std::int32_t>(seen.samples.begin(), seen.samples.end()).size(), 16U);
}

TEST(ThreadsLoader, LastBatchRepeatsTheBeginningOfTheEpoch) {
  const Dataset data = numbered(20);
  for (const bool shuffle : {false, true}) {
    Loader loader(data, {.batch = 8, .shuffle = shuffle, .last_batch = LastBatch::repeat});
    const Epoch seen = run_epoch(loader, data, 2);
    EXPECT_EQ(seen.rows, (std::vector<std::int64_t>{8, 8, 8}));
    EXPECT_TRUE(std::equal(seen.samples.begin() + 20, seen.samples.end(), seen.samples.begin()));
    EXPECT_EQ(sorted({seen.samples.begin(), seen.samples.begin() + 20}), first_numbers(20));
  }
}

TEST(Loader, UnshuffledBatchesAreViewsOnTheDataset) {
  const Dataset data = numbered(20);
  Loader loader(data, {.batch = 8});
  EXPECT_EQ(run_epoch(loader, data, 0).samples, first_numbers(20));
  loader.start_epoch(1);
  EXPECT_EQ(loader.next()->pixels.data(), data.pixels.data());
  EXPECT_EQ(loader.next()->labels.data(), data.labels.data() + 8);
  EXPECT_EQ(loader.next()->rows, 4);
  EXPECT_EQ(loader.next(), std::nullopt);
  EXPECT_EQ(loader.wait_seconds(), 0.0);
}

TEST(Loader, EvaluationSeesEverySampleOnceWhateverTheBatch) {
  const Dataset data = numbered(97);
  for (std::int64_t batch = 1; batch <= 97; ++batch) {
    Loader loader(data, {.batch = batch});
    ASSERT_EQ(run_epoch(loader, data, 0).samples, first_numbers(97)) << "batch " << batch;
  }
}

TEST(ThreadsLoader, GivesNothingBeforeTheFirstEpochAndAfterTheLastBatch) {
  const Dataset data = numbered(10);
  Loader loader(data, {.batch = 5, .shuffle = true});
  EXPECT_EQ(loader.next(), std::nullopt);
  run_epoch(loader, data, 0);
  EXPECT_EQ(loader.next(), std::nullopt);
  EXPECT_EQ(loader.next(), std::nullopt);
}

TEST(ThreadsLoader, EpochCanBeAbandonedAtAnyPoint) {
  const Dataset data = numbered(200);
  Loader loader(data, {.batch = 3, .shuffle = true, .seed = 1, .prefetch = 3});
  std::vector<std::int32_t> order(200);
  for (int taken = 0; taken < 40; ++taken) {
    loader.start_epoch(taken);
    shuffled_order(order, 1, static_cast<std::uint64_t>(taken));
    for (int i = 0; i < taken; ++i) {
      const std::optional<Batch> batch = loader.next();
      ASSERT_TRUE(batch);
      ASSERT_EQ(batch->samples[0], order[static_cast<std::size_t>(i) * 3]);
      expect_rows_match(*batch, data);
    }
  }
}

TEST(ThreadsLoader, BatchStaysValidWhileLaterOnesAreGathered) {
  const Dataset data = numbered(60);
  Loader loader(data, {.batch = 4, .shuffle = true, .prefetch = 1});
  loader.start_epoch(0);
  while (const std::optional<Batch> batch = loader.next()) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    expect_rows_match(*batch, data);
  }
}

TEST(ThreadsLoader, GathersIntoTheSameSlotsAgainAndAgain) {
  const Dataset data = numbered(100);
  Loader loader(data, {.batch = 3, .shuffle = true, .prefetch = 2});
  std::set<const std::uint8_t*> places;
  for (int epoch = 0; epoch < 3; ++epoch) {
    loader.start_epoch(epoch);
    while (const std::optional<Batch> batch = loader.next()) places.insert(batch->pixels.data());
  }
  EXPECT_EQ(places.size(), 3U);
}

TEST(ThreadsLoader, EndsCleanlyInTheMiddleOfAnEpoch) {
  const Dataset data = numbered(1000);
  for (int taken = 0; taken < 30; ++taken) {
    Loader loader(data, {.batch = 2, .shuffle = true, .prefetch = 4});
    if (taken > 0) loader.start_epoch(0);
    for (int i = 1; i < taken; ++i) ASSERT_TRUE(loader.next());
  }
}

TEST(ThreadsLoader, ErrorInTheThreadReachesNextAfterTheGoodBatches) {
  std::atomic<bool> broken = true;
  const auto read = [&](const SampleRequest& request, std::span<std::uint8_t> pixels) {
    const std::int32_t sample = request.sample;
    if (sample == 9 && broken) bad_input("sample {} is corrupt", sample);
    std::fill(pixels.begin(), pixels.end(), static_cast<std::uint8_t>(sample));
    return sample;
  };
  Loader loader(20, 3, read, {.batch = 4});
  loader.start_epoch(0);
  EXPECT_EQ(loader.next()->labels[3], 3);
  EXPECT_EQ(loader.next()->labels[3], 7);
  EXPECT_EQ(error_of([&] { (void)loader.next(); }), "sample 9 is corrupt");
  EXPECT_EQ(loader.next(), std::nullopt);

  broken = false;
  loader.start_epoch(1);
  int batches = 0;
  while (loader.next()) ++batches;
  EXPECT_EQ(batches, 5);
}

TEST(ThreadsLoader, MeasuresHowLongItWaited) {
  const auto read = [](const SampleRequest& request, std::span<std::uint8_t>) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    return request.sample;
  };
  Loader loader(6, 1, read, {.batch = 3});
  loader.start_epoch(0);
  while (loader.next()) {
  }
  EXPECT_GE(loader.wait_seconds(), 0.005);
  EXPECT_LT(loader.wait_seconds(), 10.0);
  loader.start_epoch(1);
  EXPECT_EQ(loader.wait_seconds(), 0.0);
}

TEST(Loader, RefusesBadOptions) {
  const Dataset data = numbered(20);
  EXPECT_EQ(error_of([&] { Loader(data, {.batch = 0}); }), "batch 0: must be at least 1");
  EXPECT_EQ(error_of([&] { Loader(data, {.batch = -4}); }), "batch -4: must be at least 1");
  EXPECT_EQ(error_of([&] { Loader(data, {.batch = 21}); }),
            "batch 21 is larger than the data; it must be between 1 and 20");
  EXPECT_EQ(error_of([&] { Loader(data, {.batch = 2, .prefetch = 0}); }),
            "prefetch 0: must be at least 1");
  EXPECT_EQ(error_of([&] { Loader(Dataset(), {.batch = 1}); }), "there are no samples to load");
}

}  // namespace
}  // namespace ridgeline
