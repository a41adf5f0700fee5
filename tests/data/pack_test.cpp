// Packs: the same batches as from the folder, and nothing but errors from damaged ones.

#include "data/pack.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <fstream>

#include "base/philox.h"
#include "data/catalog.h"
#include "data/loader.h"
#include "data/pack_format.h"
#include "support/images.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;
using Field = pack_format::Field;

const auto kQuiet = [](std::int64_t, std::int64_t) {};

struct Batches {
  Bytes pixels;
  std::vector<std::int32_t> labels;
  bool operator==(const Batches&) const = default;
};

Batches batches_of(const Dataset& data, bool train) {
  Loader loader(data, {.batch = 3, .shuffle = train, .seed = 9, .workers = 2, .crop = train});
  Batches all;
  for (std::int64_t epoch = 0; epoch < 2; ++epoch) {
    loader.start_epoch(epoch);
    while (const std::optional<Batch> batch = loader.next()) {
      all.pixels.insert(all.pixels.end(), batch->pixels.begin(), batch->pixels.end());
      all.labels.insert(all.labels.end(), batch->labels.begin(), batch->labels.end());
    }
  }
  return all;
}

class Pack : public FileTest {
 protected:
  void SetUp() override {
    FileTest::SetUp();
    write_class_folders(folder_ / "d/train", {"a", "b", "c"}, 3);
    write_class_folders(folder_ / "d/val", {"a", "b", "c"}, 2, 40);
    pack_ = folder_ / "d.pack";
  }
  PackSummary write_it(const PackOptions& options, FrameSize size = {32, 32}) {
    data_ = load_dataset((folder_ / "d").string(), {.image = size});
    return write_pack(data_, pack_, options, kQuiet);
  }
  // Writes the bytes with the header's and the index's checksums made right again.
  void write_sealed(Bytes bytes) const {
    const auto offset = pack_format::get<std::uint64_t>(bytes, Field::index_offset);
    if (offset <= bytes.size()) {
      pack_format::put(std::span(bytes), Field::index_checksum,
                       pack_format::checksum(std::span(bytes).subspan(offset)));
    }
    pack_format::put(std::span(bytes), pack_format::kHeaderChecksum,
                     pack_format::checksum(std::span(bytes).first(pack_format::kHeaderChecksum)));
    write_file(pack_, bytes);
  }
  [[nodiscard]] std::string refused() const {
    return refusal([&] { (void)load_dataset(pack_.string()); });
  }

  fs::path pack_;
  Split data_;
};

class ThreadsPack : public Pack {};

TEST_F(ThreadsPack, OfFilesGivesTheBatchesOfTheFolder) {
  const PackSummary summary = write_it({.kind = PackKind::encoded});
  EXPECT_EQ(summary.train_count, 9);
  EXPECT_EQ(summary.test_count, 6);
  EXPECT_EQ(summary.bytes, static_cast<std::int64_t>(fs::file_size(pack_)));
  const Split packed = load_dataset(pack_.string(), {.image = {32, 32}});
  EXPECT_EQ(packed.train.class_names, data_.train.class_names);
  EXPECT_EQ(packed.train.name, "d");
  EXPECT_TRUE(packed.train.photos);
  EXPECT_TRUE(batches_of(packed.train, true) == batches_of(data_.train, true));
  EXPECT_TRUE(batches_of(packed.test, false) == batches_of(data_.test, false));
}

TEST_F(ThreadsPack, OfPixelsEvaluatesAsTheFolder) {
  (void)write_it({}, {24, 40});
  const Split packed = load_dataset(pack_.string());
  EXPECT_EQ(packed.train.height, 24);
  EXPECT_EQ(packed.train.width, 40);
  EXPECT_TRUE(batches_of(packed.test, false) == batches_of(data_.test, false));
  EXPECT_TRUE(batches_of(packed.train, false) == batches_of(data_.train, false));
  EXPECT_EQ(batches_of(packed.train, true).labels, batches_of(data_.train, true).labels);
}

TEST_F(Pack, OfDataInMemory) {
  const Split data = load_dataset("synthetic:1x12x12:4:20");
  (void)write_pack(data, pack_, {}, kQuiet);
  const Split packed = load_dataset(pack_.string());
  EXPECT_EQ(packed.train.channels, 1);
  EXPECT_FALSE(packed.train.photos);
  EXPECT_EQ(in_memory(packed.train, 1).pixels, data.train.pixels);
  EXPECT_EQ(packed.test.labels, data.test.labels);
  expect_contains(
      refusal([&] { (void)write_pack(data, pack_, {.kind = PackKind::encoded}, kQuiet); }),
      {"no image files"});
}

TEST_F(Pack, BrokenImagesAreRefusedOrLeftOut) {
  write_file(folder_ / "d/train/b/1.jpg", {'x', 'y'});
  expect_contains(refusal([&] { (void)write_it({}); }), {"b/1.jpg", "--skip-broken"});
  EXPECT_FALSE(fs::exists(pack_));
  const PackSummary summary = write_it({.skip_broken = true});
  EXPECT_EQ(summary.train_count, 8);
  ASSERT_EQ(summary.skipped.size(), 1U);
  EXPECT_EQ(load_dataset(pack_.string()).train.labels,
            (std::vector<std::int32_t>{0, 0, 0, 1, 1, 2, 2, 2}));
}

TEST_F(Pack, LeavesNothingBehindWhenItCannotBeWritten) {
  expect_contains(refusal([&] {
                    data_ = load_dataset((folder_ / "d").string(), {.image = {8, 8}});
                    (void)write_pack(data_, folder_ / "nowhere/x.pack", {}, kQuiet);
                  }),
                  {"nowhere/x.pack", "cannot be written"});
  // As on a full disk, no file may grow beyond a few records.
  data_ = load_dataset((folder_ / "d").string(), {.image = {64, 64}});
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit small{.rlim_cur = 30000, .rlim_max = before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  setrlimit(RLIMIT_FSIZE, &small);
  std::string reason;
  try {
    (void)write_pack(data_, pack_, {}, kQuiet);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::failure);
    reason = error.what();
  }
  setrlimit(RLIMIT_FSIZE, &before);
  signal(SIGXFSZ, handler);
  expect_contains(reason, {"d.pack: cannot be written", "File too large"});
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(Pack, DamageIsFound) {
  (void)write_it({.kind = PackKind::encoded});
  const Bytes good = file_bytes(pack_);
  Bytes bytes = good;
  bytes[0] = 'X';
  write_file(pack_, bytes);
  expect_contains(refused(), {"nor a pack"});

  bytes = good;
  pack_format::put(std::span(bytes), Field::version, std::uint32_t{7});
  write_file(pack_, bytes);
  expect_contains(refused(), {"version 7", "reads version 1"});

  bytes = good;
  bytes[Field::height] ^= 1;
  write_file(pack_, bytes);
  expect_contains(refused(), {"checksum of the header"});

  bytes = good;
  bytes[good.size() - 3] ^= 1;
  write_file(pack_, bytes);
  expect_contains(refused(), {"checksum of the index"});

  write_file(pack_, Bytes(good.begin(), good.end() - 10));
  expect_contains(refused(), {"truncated or damaged"});
  write_file(pack_, Bytes(good.begin(), good.begin() + 60));
  expect_contains(refused(), {"truncated pack"});

  // A record's checksum is tested when it is read.
  bytes = good;
  bytes[200] ^= 1;
  write_file(pack_, bytes);
  const Split split = load_dataset(pack_.string(), {.image = {16, 16}});
  Loader loader(split.train, {.batch = 9, .strict = true});
  loader.start_epoch(0);
  expect_contains(refusal([&] { (void)loader.next(); }), {"record 0", "checksum is wrong"});
}

TEST_F(Pack, AbsurdNumbersAreFound) {
  (void)write_it({.kind = PackKind::encoded});
  const Bytes good = file_bytes(pack_);
  const auto with32 = [&](Field field, std::uint32_t value) {
    Bytes bytes = good;
    pack_format::put(std::span(bytes), field, value);
    write_sealed(bytes);
    return refused();
  };
  const auto with64 = [&](Field field, std::uint64_t value) {
    Bytes bytes = good;
    pack_format::put(std::span(bytes), field, value);
    write_sealed(bytes);
    return refused();
  };
  expect_contains(with64(Field::train_count, UINT64_MAX), {"do not fit"});
  expect_contains(with64(Field::train_count, 0), {"do not fit"});
  expect_contains(with64(Field::test_count, UINT64_MAX - 8), {"do not fit"});
  expect_contains(with64(Field::test_count, 1'000'000'000), {"do not fit"});
  expect_contains(with64(Field::index_offset, UINT64_MAX), {"truncated or damaged"});
  expect_contains(with64(Field::index_bytes, 5), {"truncated or damaged"});
  expect_contains(with32(Field::classes, 0), {"0 classes"});
  expect_contains(with32(Field::classes, 4'000'000'000), {"classes"});
  expect_contains(with32(Field::class_names, 2), {"with 2 names"});
  expect_contains(with32(Field::kind, 9), {"unknown kind 9"});
  expect_contains(with32(Field::height, 0), {"images of 3x0x32"});
  expect_contains(with32(Field::channels, 2), {"images of 2x"});
  expect_contains(with32(Field::kind, 0), {"an image of 3x32x32 has 3072"});
  const auto index = pack_format::get<std::uint64_t>(good, Field::index_offset);
  Bytes bytes = good;
  pack_format::put(std::span(bytes), index, std::uint64_t{good.size()});
  write_sealed(bytes);
  expect_contains(refused(), {"record 0 is outside"});
  bytes = good;
  pack_format::put(std::span(bytes), index + 16, std::uint32_t{3});
  write_sealed(bytes);
  expect_contains(refused(), {"label 3 of record 0"});
}

// Deterministic damage, with and without right checksums: only errors may come out.
TEST_F(Pack, DamagedBytesGiveErrorsOrPacks) {
  (void)write_it({.kind = PackKind::encoded});
  const Bytes good = file_bytes(pack_);
  PhiloxSequence random(5, RandomStream::synthetic, 0);
  int errors = 0;
  for (int round = 0; round < 4000; ++round) {
    Bytes bytes = good;
    const auto index = pack_format::get<std::uint64_t>(good, Field::index_offset);
    for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
      const std::size_t place = random.below(2) == 0 ? random.below(pack_format::kHeaderBytes)
                                                     : index + random.below(good.size() - index);
      bytes[place] = static_cast<std::uint8_t>(random.next());
    }
    if (random.below(8) == 0) bytes.resize(random.below(bytes.size()) + 1);
    if (random.below(2) == 0 && bytes.size() >= pack_format::kHeaderBytes) {
      const auto offset = pack_format::get<std::uint64_t>(bytes, Field::index_offset);
      if (offset <= bytes.size()) {
        pack_format::put(std::span(bytes), Field::index_checksum,
                         pack_format::checksum(std::span(bytes).subspan(offset)));
      }
      pack_format::put(std::span(bytes), pack_format::kHeaderChecksum,
                       pack_format::checksum(std::span(bytes).first(pack_format::kHeaderChecksum)));
    }
    try {
      const PackIndex pack = parse_pack(bytes, "damaged");
      for (const PackRecord& record : pack.records) {
        ASSERT_LE(record.offset + record.bytes, bytes.size());
      }
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::bad_input);
      ++errors;
    }
  }
  EXPECT_GT(errors, 2000);
}

}  // namespace
}  // namespace ridgeline
