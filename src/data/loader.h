#pragma once

// Feeds batches to training and evaluation. A thread of the loader's own gathers the next batches
// while the current one is being used.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <thread>
#include <vector>

#include "data/dataset.h"

namespace ridgeline {

// What becomes of an epoch's last samples when they do not fill a batch.
enum class LastBatch : std::uint8_t {
  smaller,  // a batch with fewer rows
  drop,     // left out of this epoch
  repeat,   // filled up with the samples that came first in this epoch's order; all rows count
};

struct LoaderOptions {
  std::int64_t batch = 64;
  bool shuffle = false;
  std::uint64_t seed = 0;
  LastBatch last_batch = LastBatch::smaller;
  int prefetch = 2;  // batches gathered ahead
};

// A view on one batch, valid until the next call of next() or start_epoch(). All spans have `rows`
// rows; `samples` are the samples' positions in the dataset.
struct Batch {
  std::span<const std::uint8_t> pixels;
  std::span<const std::int32_t> labels;
  std::span<const std::int32_t> samples;
  std::int64_t rows = 0;
  std::int64_t epoch = 0;
  std::int64_t index = 0;  // within the epoch
};

// Reads one sample: fills its pixels, returns its label. Called from the loader's thread.
using ReadSample = std::function<std::int32_t(std::int32_t sample, std::span<std::uint8_t> pixels)>;

// One thread calls a loader's functions. The order of the samples is a pure function of (seed,
// epoch); nothing is allocated after construction.
class Loader {
 public:
  // REQUIRES: `data` outlives the loader. Batches that lie in the dataset as they are (no shuffle,
  // no repeated rows) are views on it: nothing is copied and no thread is started.
  // A batch below 1 or above the number of samples is a bad_input Error; for evaluation, where a
  // batch may exceed the samples, the caller takes the smaller of both.
  Loader(const Dataset& data, const LoaderOptions& options);
  // Samples that are read one by one, wherever they come from.
  Loader(std::int64_t count, std::size_t sample_bytes, ReadSample read,
         const LoaderOptions& options);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Batches in every epoch.
  [[nodiscard]] std::int64_t batches() const { return batches_; }
  // Rows in every epoch, repeated ones included.
  [[nodiscard]] std::int64_t rows() const;

  // Begins an epoch at one of its batches, whether or not the one before was used up.
  void start_epoch(std::int64_t epoch, std::int64_t first_batch = 0);

  // The next batch, or nothing at the end of the epoch (and before the first start_epoch). Rethrows
  // what went wrong in the thread; the loader then needs a new start_epoch.
  [[nodiscard]] std::optional<Batch> next();

  // Time that next() has waited for data since start_epoch.
  [[nodiscard]] double wait_seconds() const { return wait_seconds_; }

 private:
  struct Slot {
    std::vector<std::uint8_t> pixels;
    std::vector<std::int32_t> labels;
  };

  Loader(const Dataset* data, std::int64_t count, std::size_t sample_bytes, ReadSample read,
         const LoaderOptions& options);
  [[nodiscard]] std::int64_t rows_of(std::int64_t index) const;
  [[nodiscard]] std::span<const std::int32_t> samples_of(std::int64_t index) const;
  [[nodiscard]] Slot& slot_of(std::int64_t index) {
    return slots_[static_cast<std::size_t>(index) % slots_.size()];
  }
  void make_order(std::int64_t epoch);
  void gather(std::int64_t index);
  void work(const std::stop_token& stop);
  [[nodiscard]] bool work_to_do() const;

  const Dataset* data_;  // where batches are views; null where they are gathered
  std::int64_t count_;
  std::size_t sample_bytes_;
  ReadSample read_;
  LoaderOptions options_;
  std::int64_t batches_ = 0;
  std::vector<Slot> slots_;          // one more than `prefetch`: the batch in use keeps its own
  std::vector<std::int32_t> order_;  // of the epoch, its beginning again at the end for `repeat`
  std::int64_t next_index_ = 0;      // of the batch that next() gives
  double wait_seconds_ = 0.0;

  // Shared with the thread, guarded by mutex_.
  std::mutex mutex_;
  std::condition_variable_any wake_thread_, wake_user_;
  std::int64_t epoch_ = 0;
  std::int64_t gathered_ = 0;  // batches of this epoch that are ready
  std::int64_t released_ = 0;  // batches whose slots may be used again
  std::int64_t end_ = 0;       // batches to gather in this epoch; 0 before the first one
  bool order_ready_ = false;
  bool busy_ = false;  // the thread is at work on order or slots, outside the lock
  std::exception_ptr error_;

  std::jthread thread_;  // last: stopped and joined before anything it uses goes away
};

}  // namespace ridgeline
