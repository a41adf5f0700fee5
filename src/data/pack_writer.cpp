#include <algorithm>
#include <optional>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/parallel.h"
#include "base/text.h"
#include "data/pack.h"
#include "data/pack_format.h"
#include "data/sample_reader.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
namespace format = pack_format;
using Field = format::Field;

constexpr std::int64_t kImagesAtOnce = 64;  // images decoded side by side

class PackWriter {
 public:
  PackWriter(const Split& data, const fs::path& path, const PackOptions& options,
             const std::function<void(std::int64_t, std::int64_t)>& progress)
      : data_(data), options_(options), progress_(progress), file_(path, ErrorKind::bad_input) {}

  PackSummary run() {
    write(std::vector<std::uint8_t>(format::kHeaderBytes, 0));
    add_part(data_.train);
    summary_.train_count = count_;
    add_part(data_.test);
    summary_.test_count = count_ - summary_.train_count;
    if (summary_.train_count == 0) bad_input("no training image is left for the pack");
    if (summary_.test_count == 0 && !data_.test.empty()) {
      bad_input("no test image is left for the pack: {}", listed(summary_.skipped, "\n  "));
    }
    const std::uint64_t index_offset = size_;
    add_names();
    write(index_);
    const std::vector<std::uint8_t> start = header(index_offset);
    file_.write_at(0, std::as_bytes(std::span(start)));
    file_.commit();
    summary_.bytes = static_cast<std::int64_t>(size_);
    return std::move(summary_);
  }

 private:
  void write(std::span<const std::uint8_t> bytes) {
    file_.write(std::as_bytes(bytes));
    size_ += bytes.size();
  }

  void add_part(const Dataset& data) {
    if (data.empty()) return;
    if (options_.kind == PackKind::encoded) {
      copy_files(data);
    } else {
      decode(data);
    }
  }

  void add_record(std::span<const std::uint8_t> bytes, std::int32_t label) {
    format::append(index_, size_);
    format::append(index_, static_cast<std::uint32_t>(bytes.size()));
    format::append(index_, format::checksum(bytes));
    format::append(index_, label);
    format::append(index_, std::uint32_t{0});
    write(bytes);
    ++count_;
  }

  void step() { progress_(++done_, data_.train.count() + data_.test.count()); }

  void copy_files(const Dataset& data) {
    std::vector<std::uint8_t> scratch;
    for (std::size_t i = 0; i < data.labels.size(); ++i) {
      const StoredImage image = data.images->fetch(data.image_numbers[i], scratch);
      add_record(image.bytes, data.labels[i]);
      step();
    }
  }

  void decode(const Dataset& data) {
    SampleReader reader(data, {.workers = thread_count(), .strict = true});
    const std::size_t bytes = data.sample_bytes();
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(kImagesAtOnce) * bytes);
    for (std::int64_t first = 0; first < data.count(); first += kImagesAtOnce) {
      const std::int64_t rows = std::min(kImagesAtOnce, data.count() - first);
      std::vector<std::optional<Error>> errors(static_cast<std::size_t>(rows));
      parallel([&](int thread, int threads) {
        const Range range = share_of(rows, thread, threads);
        for (std::int64_t row = range.begin; row < range.end; ++row) {
          const auto at = static_cast<std::size_t>(row);
          try {
            reader.read({.sample = static_cast<std::int32_t>(first + row), .worker = thread},
                        std::span(pixels).subspan(at * bytes, bytes));
          } catch (const Error& error) {
            errors[at] = error;
          }
        }
      });
      for (std::int64_t row = 0; row < rows; ++row) {
        const auto at = static_cast<std::size_t>(row);
        step();
        if (errors[at] && !options_.skip_broken) {
          bad_input("{}; --skip-broken leaves such images out of the pack", errors[at]->what());
        }
        if (errors[at]) {
          summary_.skipped.emplace_back(errors[at]->what());
          continue;
        }
        add_record(std::span(pixels).subspan(at * bytes, bytes),
                   data.labels[static_cast<std::size_t>(first + row)]);
      }
    }
  }

  void add_text(const std::string& text) {
    format::append(index_, static_cast<std::uint32_t>(text.size()));
    index_.insert(index_.end(), text.begin(), text.end());
  }

  void add_names() {
    add_text(data_.train.name);
    for (const std::string& name : data_.train.class_names) add_text(name);
  }

  [[nodiscard]] std::vector<std::uint8_t> header(std::uint64_t index_offset) const {
    std::vector<std::uint8_t> bytes(format::kHeaderBytes, 0);
    const std::span<std::uint8_t> to(bytes);
    const auto put32 = [&](Field field, auto number) {
      format::put(to, field, static_cast<std::uint32_t>(number));
    };
    std::copy(format::kMagic.begin(), format::kMagic.end(), bytes.begin());
    put32(Field::version, format::kVersion);
    put32(Field::kind, options_.kind);
    put32(Field::channels, data_.train.channels);
    put32(Field::height, data_.train.height);
    put32(Field::width, data_.train.width);
    put32(Field::classes, data_.train.classes);
    format::put(to, Field::train_count, static_cast<std::uint64_t>(summary_.train_count));
    format::put(to, Field::test_count, static_cast<std::uint64_t>(summary_.test_count));
    format::put(to, Field::index_offset, index_offset);
    format::put(to, Field::index_bytes, static_cast<std::uint64_t>(index_.size()));
    put32(Field::index_checksum, format::checksum(index_));
    put32(Field::class_names, data_.train.class_names.size());
    put32(Field::photos, data_.train.photos ? 1 : 0);
    format::put(to, format::kHeaderChecksum, format::checksum(to.first(format::kHeaderChecksum)));
    return bytes;
  }

  const Split& data_;
  const PackOptions& options_;
  const std::function<void(std::int64_t, std::int64_t)>& progress_;
  DurableFile file_;
  std::uint64_t size_ = 0;
  std::vector<std::uint8_t> index_;
  std::int64_t count_ = 0, done_ = 0;
  PackSummary summary_;
};

}  // namespace

PackSummary write_pack(const Split& data, const fs::path& path, const PackOptions& options,
                       const std::function<void(std::int64_t, std::int64_t)>& progress) {
  if (data.train.channels != 1 && data.train.channels != 3) {
    bad_input("{}: a pack can have images of 1 or 3 channels; these have {}", data.train.name,
              data.train.channels);
  }
  if (options.kind == PackKind::encoded && data.train.images == nullptr) {
    bad_input(
        "{}: there are no image files to copy: the data is in memory as pixels; pack it "
        "without --jpeg",
        data.train.name);
  }
  return PackWriter(data, path, options, progress).run();
}

}  // namespace ridgeline
