#include "data/loader.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "base/clock.h"
#include "base/error.h"

namespace ridgeline {
namespace {

void check(std::int64_t count, const LoaderOptions& options) {
  if (count < 1) bad_input("there are no samples to load");
  if (count > std::numeric_limits<std::int32_t>::max()) {
    bad_input("{} samples are more than a loader can number ({})", count,
              std::numeric_limits<std::int32_t>::max());
  }
  if (options.batch < 1) bad_input("batch {}: must be at least 1", options.batch);
  if (options.batch > count) {
    bad_input("batch {} is larger than the data; it must be between 1 and {}", options.batch,
              count);
  }
  if (options.prefetch < 1) bad_input("prefetch {}: must be at least 1", options.prefetch);
  ensure(options.parts >= 1 && options.part >= 0 && options.part < options.parts,
         "there is no part {} of {}", options.part, options.parts);
  if (options.workers < 1) bad_input("workers {}: must be at least 1", options.workers);
}

bool lies_in_order(const Dataset& data, const LoaderOptions& options) {
  const bool repeats = options.last_batch == LastBatch::repeat && data.count() % options.batch != 0;
  return !options.shuffle && !repeats && !needs_reader(data, options.crop);
}

std::shared_ptr<SampleReader> reader_of(const Dataset& data, const LoaderOptions& options) {
  if (data.empty() || !needs_reader(data, options.crop)) return nullptr;
  return std::make_shared<SampleReader>(data,
                                        SampleReaderOptions{.seed = options.seed,
                                                            .workers = std::max(1, options.workers),
                                                            .crop = options.crop,
                                                            .strict = options.strict});
}

ReadSample copier_of(const Dataset& data) {
  return [&data](const SampleRequest& request, std::span<std::uint8_t> pixels) {
    const std::span<const std::uint8_t> from = data.sample(request.sample);
    std::copy(from.begin(), from.end(), pixels.begin());
    return data.labels[static_cast<std::size_t>(request.sample)];
  };
}

// Copying is done before a second thread has woken up.
LoaderOptions options_for(const Dataset& data, LoaderOptions options) {
  if (!needs_reader(data, options.crop)) options.workers = std::min(options.workers, 1);
  return options;
}

}  // namespace

Loader::Loader(const Dataset& data, const LoaderOptions& options)
    : Loader(lies_in_order(data, options) ? &data : nullptr, data.count(), data.sample_bytes(),
             copier_of(data), reader_of(data, options), nullptr, options_for(data, options)) {}

Loader::Loader(const Dataset& data, const LoaderOptions& options, std::shared_ptr<BatchPlace> place)
    : Loader(nullptr, data.count(), data.sample_bytes(), {}, reader_of(data, options),
             std::move(place), options) {}

Loader::Loader(std::int64_t count, std::size_t sample_bytes, ReadSample read,
               const LoaderOptions& options)
    : Loader(nullptr, count, sample_bytes, std::move(read), nullptr, nullptr, options) {}

Loader::Loader(const Dataset* data, std::int64_t count, std::size_t sample_bytes, ReadSample read,
               std::shared_ptr<SampleReader> reader, std::shared_ptr<BatchPlace> place,
               const LoaderOptions& options)
    : data_(data),
      count_(count),
      sample_bytes_(sample_bytes),
      read_(std::move(read)),
      reader_(std::move(reader)),
      place_(std::move(place)),
      options_(options) {
  check(count, options);
  const bool whole = options.last_batch == LastBatch::drop;
  batches_ = (whole ? count : count + options.batch - 1) / options.batch;
  order_.resize(static_cast<std::size_t>(std::max(count, rows())));
  make_order(0);
  if (data_ != nullptr) return;
  if (reader_ != nullptr && place_ == nullptr) {
    read_ = [this](const SampleRequest& request, std::span<std::uint8_t> pixels) {
      return reader_->read(request, pixels);
    };
  }
  slots_.resize(static_cast<std::size_t>(options.prefetch) + 1);
  const std::int64_t rows = (options.batch + options.parts - 1) / options.parts;
  if (place_ != nullptr) {
    place_->set_up({.slots = slots_.size(),
                    .rows = static_cast<std::size_t>(rows),
                    .sample_bytes = sample_bytes_,
                    .workers = options.workers});
  }
  for (Slot& slot : slots_) {
    if (place_ == nullptr) {
      slot.pixels.resize(static_cast<std::size_t>(options.batch) * sample_bytes_);
    }
    slot.labels.resize(static_cast<std::size_t>(options.batch));
  }
  // One thread takes a batch at a time; several share it, in pieces small enough that none waits
  // long for the last one.
  const std::int64_t pieces = options.workers == 1 ? 1 : std::int64_t{4} * options.workers;
  piece_rows_ = std::max<std::int64_t>(1, options.batch / pieces);
  threads_.reserve(static_cast<std::size_t>(options.workers));
  for (int worker = 0; worker < options.workers; ++worker) {
    threads_.emplace_back([this, worker](const std::stop_token& stop) { work(stop, worker); });
  }
}

std::int64_t Loader::rows() const {
  return options_.last_batch == LastBatch::smaller ? count_ : batches_ * options_.batch;
}

std::int64_t Loader::batch_rows_of(std::int64_t index) const {
  return std::min(options_.batch, rows() - index * options_.batch);
}

Range Loader::part_of(std::int64_t index) const {
  const Range part = share_of(batch_rows_of(index), options_.part, options_.parts);
  return {index * options_.batch + part.begin, index * options_.batch + part.end};
}

std::int64_t Loader::rows_of(std::int64_t index) const {
  const Range part = part_of(index);
  return part.end - part.begin;
}

std::span<const std::int32_t> Loader::samples_of(std::int64_t index) const {
  return std::span(order_).subspan(static_cast<std::size_t>(part_of(index).begin),
                                   static_cast<std::size_t>(rows_of(index)));
}

void Loader::make_order(std::int64_t epoch) {
  const auto samples = std::span(order_).first(static_cast<std::size_t>(count_));
  if (options_.shuffle) {
    shuffled_order(samples, options_.seed, static_cast<std::uint64_t>(epoch));
  } else {
    std::iota(samples.begin(), samples.end(), 0);
  }
  const std::size_t repeated = order_.size() - samples.size();
  std::copy_n(samples.begin(), repeated, order_.begin() + count_);
}

bool Loader::work_to_do() const {
  return taken_ < end_ && taken_ - released_ < static_cast<std::int64_t>(slots_.size());
}

Loader::Piece Loader::take_piece() {
  const std::int64_t rows = rows_of(taken_);
  if (taken_row_ == 0) {
    Slot& slot = slot_of(taken_);
    slot.rows_left = rows;
    slot.error = nullptr;
    slot.sent = place_ == nullptr;
    if (place_ != nullptr) begin_slot(slot);
  }
  const Piece piece{taken_, taken_row_, std::min(piece_rows_, rows - taken_row_)};
  taken_row_ += piece.rows;
  if (taken_row_ == rows) {
    ++taken_;
    taken_row_ = 0;
  }
  return piece;
}

void Loader::begin_slot(Slot& slot) {
  try {
    place_->begin(slot_number(taken_));
  } catch (...) {
    note_error(slot, 0, std::current_exception());
  }
}

std::int32_t Loader::read_row(const Piece& piece, std::int64_t row, int worker,
                              std::int64_t epoch) {
  const auto at = static_cast<std::size_t>(row);
  const SampleRequest request{
      .sample = samples_of(piece.index)[at], .epoch = epoch, .worker = worker};
  if (place_ != nullptr) {
    return reader_->read(request, *place_, {slot_number(piece.index), at, worker});
  }
  return read_(request,
               std::span(slot_of(piece.index).pixels).subspan(at * sample_bytes_, sample_bytes_));
}

void Loader::note_error(Slot& slot, std::int64_t row, std::exception_ptr error) {
  if (slot.error && row >= slot.error_row) return;
  slot.error = std::move(error);
  slot.error_row = row;
}

void Loader::gather(const Piece& piece, int worker, std::int64_t epoch) {
  Slot& slot = slot_of(piece.index);
  std::exception_ptr error;
  std::int64_t row = piece.first;
  try {
    for (; row < piece.first + piece.rows; ++row) {
      slot.labels[static_cast<std::size_t>(row)] = read_row(piece, row, worker, epoch);
    }
  } catch (...) {
    error = std::current_exception();
  }
  bool last = false;
  {
    const std::scoped_lock lock(mutex_);
    if (error) note_error(slot, row, error);
    slot.rows_left -= piece.rows;
    last = slot.rows_left == 0 && place_ != nullptr;
  }
  if (last) send(piece, worker, epoch);
}

// By the thread that brought the last row. What the place could not make after all, the host does.
void Loader::send(const Piece& piece, int worker, std::int64_t epoch) {
  Slot& slot = slot_of(piece.index);
  const std::size_t number = slot_number(piece.index);
  const auto rows = static_cast<std::size_t>(rows_of(piece.index));
  std::exception_ptr error;
  try {
    while (!slot.error) {
      const std::vector<std::size_t> left = place_->send(number, rows);
      if (left.empty()) break;
      for (const std::size_t row : left) {
        slot.labels[row] = reader_->read(
            {.sample = samples_of(piece.index)[row], .epoch = epoch, .worker = worker},
            place_->room({number, row, worker}));
      }
    }
  } catch (...) {
    error = std::current_exception();
  }
  const std::scoped_lock lock(mutex_);
  if (error) note_error(slot, static_cast<std::int64_t>(rows), error);
  slot.sent = true;
}

void Loader::work(const std::stop_token& stop, int worker) {
  std::unique_lock lock(mutex_);
  while (wake_threads_.wait(lock, stop, [this] { return work_to_do(); })) {
    const Piece piece = take_piece();
    const std::int64_t epoch = epoch_;
    ++busy_;
    lock.unlock();
    gather(piece, worker, epoch);
    lock.lock();
    --busy_;
    wake_user_.notify_one();
  }
}

void Loader::start_epoch(std::int64_t epoch, std::int64_t first_batch) {
  ensure(first_batch >= 0 && first_batch <= batches_, "an epoch of {} batches has no batch {}",
         batches_, first_batch);
  std::unique_lock lock(mutex_);
  end_ = 0;  // nothing new is begun
  wake_user_.wait(lock, [this] { return busy_ == 0; });
  epoch_ = epoch;
  if (options_.shuffle) make_order(epoch);
  next_index_ = taken_ = released_ = first_batch;
  taken_row_ = 0;
  end_ = batches_;
  wait_seconds_ = 0.0;
  wake_threads_.notify_all();
}

std::optional<Batch> Loader::next() {
  std::unique_lock lock(mutex_);
  if (next_index_ >= end_) return std::nullopt;
  const std::int64_t index = next_index_;
  const std::int64_t rows = rows_of(index);
  Batch batch;
  batch.samples = samples_of(index);
  batch.rows = rows;
  batch.batch_rows = batch_rows_of(index);
  batch.epoch = epoch_;
  batch.index = index;
  if (data_ != nullptr) {
    const auto first = static_cast<std::size_t>(part_of(index).begin);
    batch.pixels =
        std::span(data_->pixels)
            .subspan(first * sample_bytes_, static_cast<std::size_t>(rows) * sample_bytes_);
    batch.labels = std::span(data_->labels).subspan(first, static_cast<std::size_t>(rows));
  } else {
    released_ = index;
    wake_threads_.notify_all();
    Slot& slot = slot_of(index);
    const auto ready = [&] { return taken_ > index && slot.rows_left == 0 && slot.sent; };
    const auto start = Clock::now();
    const bool waits = !ready() || place_ != nullptr;
    wake_user_.wait(lock, ready);
    if (!slot.error && place_ != nullptr) {
      lock.unlock();
      place_->wait(slot_number(index));
      lock.lock();
    }
    if (waits) wait_seconds_ += seconds_since(start);
    if (slot.error) {
      end_ = 0;
      std::rethrow_exception(slot.error);
    }
    batch.place = place_.get();
    batch.slot = slot_number(index);
    if (place_ == nullptr) {
      batch.pixels = std::span(slot.pixels).first(static_cast<std::size_t>(rows) * sample_bytes_);
    }
    batch.labels = std::span(slot.labels).first(static_cast<std::size_t>(rows));
  }
  ++next_index_;
  return batch;
}

std::vector<BrokenImage> Loader::broken() const {
  return reader_ != nullptr ? reader_->broken() : std::vector<BrokenImage>();
}

}  // namespace ridgeline
