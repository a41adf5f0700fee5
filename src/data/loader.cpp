#include "data/loader.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <numeric>
#include <utility>

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
    bad_input("batch {} is larger than the data; it must lie between 1 and {}", options.batch,
              count);
  }
  if (options.prefetch < 1) bad_input("prefetch {}: must be at least 1", options.prefetch);
}

bool lies_in_order(std::int64_t count, const LoaderOptions& options) {
  const bool repeats = options.last_batch == LastBatch::repeat && count % options.batch != 0;
  return !options.shuffle && !repeats;
}

ReadSample reader_of(const Dataset& data) {
  return [&data](std::int32_t sample, std::span<std::uint8_t> pixels) {
    const std::span<const std::uint8_t> from = data.sample(sample);
    std::copy(from.begin(), from.end(), pixels.begin());
    return data.labels[static_cast<std::size_t>(sample)];
  };
}

}  // namespace

Loader::Loader(const Dataset& data, const LoaderOptions& options)
    : Loader(lies_in_order(data.count(), options) ? &data : nullptr, data.count(),
             data.sample_bytes(), reader_of(data), options) {}

Loader::Loader(std::int64_t count, std::size_t sample_bytes, ReadSample read,
               const LoaderOptions& options)
    : Loader(nullptr, count, sample_bytes, std::move(read), options) {}

Loader::Loader(const Dataset* data, std::int64_t count, std::size_t sample_bytes, ReadSample read,
               const LoaderOptions& options)
    : data_(data),
      count_(count),
      sample_bytes_(sample_bytes),
      read_(std::move(read)),
      options_(options) {
  check(count, options);
  const bool whole = options.last_batch == LastBatch::drop;
  batches_ = (whole ? count : count + options.batch - 1) / options.batch;
  order_.resize(static_cast<std::size_t>(std::max(count, rows())));
  make_order(0);
  if (data_ != nullptr) return;
  slots_.resize(static_cast<std::size_t>(options.prefetch) + 1);
  for (Slot& slot : slots_) {
    slot.pixels.resize(static_cast<std::size_t>(options.batch) * sample_bytes_);
    slot.labels.resize(static_cast<std::size_t>(options.batch));
  }
  thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

std::int64_t Loader::rows() const {
  return options_.last_batch == LastBatch::smaller ? count_ : batches_ * options_.batch;
}

std::int64_t Loader::rows_of(std::int64_t index) const {
  return std::min(options_.batch, rows() - index * options_.batch);
}

std::span<const std::int32_t> Loader::samples_of(std::int64_t index) const {
  return std::span(order_).subspan(static_cast<std::size_t>(index * options_.batch),
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

void Loader::gather(std::int64_t index) {
  Slot& slot = slot_of(index);
  std::size_t row = 0;
  for (const std::int32_t sample : samples_of(index)) {
    slot.labels[row] =
        read_(sample, std::span(slot.pixels).subspan(row * sample_bytes_, sample_bytes_));
    ++row;
  }
}

bool Loader::work_to_do() const {
  if (error_ || gathered_ >= end_) return false;
  return gathered_ - released_ < static_cast<std::int64_t>(slots_.size());
}

void Loader::work(const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  while (wake_thread_.wait(lock, stop, [this] { return work_to_do(); })) {
    const bool make = !order_ready_;
    const std::int64_t epoch = epoch_, index = gathered_;
    busy_ = true;
    lock.unlock();
    std::exception_ptr error;
    try {
      if (make) make_order(epoch);
      gather(index);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    order_ready_ = true;
    if (error) {
      error_ = error;
    } else {
      ++gathered_;
    }
    wake_user_.notify_one();
  }
}

void Loader::start_epoch(std::int64_t epoch, std::int64_t first_batch) {
  std::unique_lock lock(mutex_);
  end_ = gathered_;  // nothing new is begun
  wake_user_.wait(lock, [this] { return !busy_; });
  epoch_ = epoch;
  gathered_ = released_ = first_batch;
  end_ = batches_;
  order_ready_ = false;
  error_ = nullptr;
  next_index_ = first_batch;
  wait_seconds_ = 0.0;
  wake_thread_.notify_one();
}

std::optional<Batch> Loader::next() {
  std::unique_lock lock(mutex_);
  if (next_index_ >= end_) return std::nullopt;
  const std::int64_t index = next_index_;
  const std::int64_t rows = rows_of(index);
  Batch batch;
  batch.samples = samples_of(index);
  batch.rows = rows;
  batch.epoch = epoch_;
  batch.index = index;
  if (data_ != nullptr) {
    const auto first = static_cast<std::size_t>(index * options_.batch);
    batch.pixels =
        std::span(data_->pixels)
            .subspan(first * sample_bytes_, static_cast<std::size_t>(rows) * sample_bytes_);
    batch.labels = std::span(data_->labels).subspan(first, static_cast<std::size_t>(rows));
  } else {
    released_ = index;
    wake_thread_.notify_one();
    if (gathered_ <= index && !error_) {
      const auto start = std::chrono::steady_clock::now();
      wake_user_.wait(lock, [&] { return gathered_ > index || error_; });
      wait_seconds_ +=
          std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    }
    if (gathered_ <= index) {
      end_ = 0;
      std::rethrow_exception(error_);
    }
    const Slot& slot = slot_of(index);
    batch.pixels = std::span(slot.pixels).first(static_cast<std::size_t>(rows) * sample_bytes_);
    batch.labels = std::span(slot.labels).first(static_cast<std::size_t>(rows));
  }
  ++next_index_;
  return batch;
}

}  // namespace ridgeline
