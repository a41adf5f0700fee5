#pragma once

// Feeds batches to training and evaluation. Threads of the loader's own gather the next batches
// while the current one is being used.

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "base/parallel.h"
#include "data/batch_place.h"
#include "data/dataset.h"
#include "data/sample_reader.h"

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
  int prefetch = 2;     // batches gathered ahead
  int workers = 1;      // threads that read samples; batches do not depend on their number
  bool crop = false;    // each sample is a random resized crop of its image
  bool strict = false;  // a broken image is an error instead of being replaced
  // Of every batch only one of so many parts of rows, as even as possible: that of one rank.
  int part = 0, parts = 1;
};

// A view on one batch, or on this loader's part of it, valid until the next call of next() or
// start_epoch(). All spans have `rows` rows; `samples` are the samples' positions in the dataset.
// Where there is a place, the pixels lie in its slot, and not in the host's memory.
struct Batch {
  std::span<const std::uint8_t> pixels;
  std::span<const std::int32_t> labels;
  std::span<const std::int32_t> samples;
  std::int64_t rows = 0;
  std::int64_t batch_rows = 0;  // of all parts
  std::int64_t epoch = 0;
  std::int64_t index = 0;  // within the epoch
  BatchPlace* place = nullptr;
  std::size_t slot = 0;
};

// Reads one sample: fills its pixels, returns its label. Called from the loader's threads.
using ReadSample =
    std::function<std::int32_t(const SampleRequest& request, std::span<std::uint8_t> pixels)>;

// One thread calls a loader's functions. The order of the samples is a pure function of (seed,
// epoch); nothing is allocated after construction but what image libraries take for themselves.
class Loader {
 public:
  // REQUIRES: `data` outlives the loader. Batches that lie in the dataset as they are (in memory,
  // no shuffle, no repeated rows) are views on it: nothing is copied and no thread is started.
  // A batch below 1 or above the number of samples is a bad_input Error; for evaluation, where a
  // batch may exceed the samples, the caller takes the smaller of both.
  Loader(const Dataset& data, const LoaderOptions& options);
  // Batches are put together in a place. REQUIRES: has_encoded_images(data); the place is not null
  // and outlives all use of its batches.
  Loader(const Dataset& data, const LoaderOptions& options, std::shared_ptr<BatchPlace> place);
  // Samples that are read one by one, wherever they come from.
  Loader(std::int64_t count, std::size_t sample_bytes, ReadSample read,
         const LoaderOptions& options);
  Loader(const Loader&) = delete;
  Loader& operator=(const Loader&) = delete;

  // Batches in every epoch.
  [[nodiscard]] std::int64_t batches() const { return batches_; }
  // Rows in every epoch, repeated ones included.
  [[nodiscard]] std::int64_t rows() const;

  // Begins an epoch, whether or not the one before was used up. A training that is resumed in the
  // middle of an epoch begins at a later batch; what comes then does not depend on it.
  void start_epoch(std::int64_t epoch, std::int64_t first_batch = 0);

  // The next batch, or nothing at the end of the epoch (and before the first start_epoch). Rethrows
  // what went wrong in a thread; the loader then needs a new start_epoch.
  [[nodiscard]] std::optional<Batch> next();

  // Time that next() has waited for data since start_epoch.
  [[nodiscard]] double wait_seconds() const { return wait_seconds_; }

  // The images that could not be decoded so far, in the order of the dataset.
  [[nodiscard]] std::vector<BrokenImage> broken() const;

 private:
  struct Slot {
    std::vector<std::uint8_t> pixels;
    std::vector<std::int32_t> labels;
    std::int64_t rows_left = 0;  // not yet gathered
    bool sent = false;           // to the place, where there is one
    std::exception_ptr error;    // of the first row that failed
    std::int64_t error_row = 0;
  };
  // Rows of one batch that one thread gathers.
  struct Piece {
    std::int64_t index = 0, first = 0, rows = 0;
  };

  Loader(const Dataset* data, std::int64_t count, std::size_t sample_bytes, ReadSample read,
         std::shared_ptr<SampleReader> reader, std::shared_ptr<BatchPlace> place,
         const LoaderOptions& options);
  [[nodiscard]] std::int64_t batch_rows_of(std::int64_t index) const;
  [[nodiscard]] Range part_of(std::int64_t index) const;  // of the epoch's rows
  [[nodiscard]] std::int64_t rows_of(std::int64_t index) const;
  [[nodiscard]] std::span<const std::int32_t> samples_of(std::int64_t index) const;
  [[nodiscard]] std::size_t slot_number(std::int64_t index) const {
    return static_cast<std::size_t>(index) % slots_.size();
  }
  [[nodiscard]] Slot& slot_of(std::int64_t index) { return slots_[slot_number(index)]; }
  void make_order(std::int64_t epoch);
  void work(const std::stop_token& stop, int worker);
  [[nodiscard]] bool work_to_do() const;
  [[nodiscard]] Piece take_piece();
  void gather(const Piece& piece, int worker, std::int64_t epoch);
  [[nodiscard]] std::int32_t read_row(const Piece& piece, std::int64_t row, int worker,
                                      std::int64_t epoch);
  void note_error(Slot& slot, std::int64_t row, std::exception_ptr error);
  void begin_slot(Slot& slot);
  void send(const Piece& piece, int worker, std::int64_t epoch);

  const Dataset* data_;  // where batches are views; null where they are gathered
  std::int64_t count_;
  std::size_t sample_bytes_;
  ReadSample read_;
  std::shared_ptr<SampleReader> reader_;  // behind read_ where images are decoded; else null
  std::shared_ptr<BatchPlace> place_;     // null: batches lie in the slots
  LoaderOptions options_;
  std::int64_t batches_ = 0;
  std::int64_t piece_rows_ = 1;
  std::vector<Slot> slots_;          // one more than `prefetch`: the batch in use keeps its own
  std::vector<std::int32_t> order_;  // of the epoch, its beginning again at the end for `repeat`
  std::int64_t next_index_ = 0;      // of the batch that next() gives
  double wait_seconds_ = 0.0;

  // Shared with the threads, guarded by mutex_ (the pixels and labels of a slot belong to the
  // threads that have taken its rows).
  std::mutex mutex_;
  std::condition_variable_any wake_threads_, wake_user_;
  std::int64_t epoch_ = 0;
  std::int64_t taken_ = 0;      // the batch whose rows are being given out
  std::int64_t taken_row_ = 0;  // its first row that no thread has taken
  std::int64_t released_ = 0;   // batches whose slots may be used again
  std::int64_t end_ = 0;        // batches to gather in this epoch; 0 before the first one
  int busy_ = 0;                // threads at work outside the lock

  std::vector<std::jthread> threads_;  // last: joined before anything they use goes away
};

}  // namespace ridgeline
