// Reading IDX and CSV files: good ones round trip, every kind of bad one is refused with a message
// that says where and what would be right.

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/philox.h"
#include "data/csv.h"
#include "data/idx.h"
#include "support/allocations.h"
#include "support/data_files.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;

class IdxTest : public FileTest {};
class CsvTest : public FileTest {};

TEST_F(IdxTest, PlainAndGzipGiveTheSameSamples) {
  const Bytes pixels = ramp(5 * 6 * 4), labels = {3, 0, 9, 1, 1};
  const fs::path images = write("images", idx({5, 6, 4}, pixels));
  const fs::path label_file = write("labels", idx({5}, labels));
  const fs::path packed_images = write("images.gz", gzip(idx({5, 6, 4}, pixels)));
  const fs::path packed_labels = write("labels.gz", gzip(idx({5}, labels)));
  for (const auto& [i, l] :
       {std::pair(images, label_file), std::pair(packed_images, packed_labels)}) {
    const Dataset data = read_idx_pair(i, l, 10);
    EXPECT_EQ(data.count(), 5);
    EXPECT_EQ(data.channels, 1);
    EXPECT_EQ(data.height, 6);
    EXPECT_EQ(data.width, 4);
    EXPECT_EQ(data.classes, 10);
    EXPECT_EQ(data.pixels, pixels);
    EXPECT_EQ(data.labels, (std::vector<std::int32_t>{3, 0, 9, 1, 1}));
  }
}

TEST_F(IdxTest, GzipMembersAreJoined) {
  const Bytes whole = idx({3, 50, 50}, ramp(7500));
  Bytes packed = gzip({whole.begin(), whole.begin() + 1000});
  const Bytes rest = gzip({whole.begin() + 1000, whole.end()});
  packed.insert(packed.end(), rest.begin(), rest.end());
  EXPECT_EQ(read_idx(write("joined.gz", packed), 3).data, ramp(7500));
}

TEST_F(IdxTest, GzipIsToldByItsContents) {
  EXPECT_EQ(read_idx(write("labels", gzip(idx({3}, {1, 2, 3}))), 1).data, (Bytes{1, 2, 3}));
}

TEST_F(IdxTest, MissingFileAndFolderInItsPlace) {
  expect_contains(refusal([&] { (void)read_idx(folder_ / "absent", 1); }),
                  {(folder_ / "absent").string(), "cannot be opened", "No such file"});
  expect_contains(refusal([&] { (void)read_idx(folder_, 1); }), {folder_.string(), "is a folder"});
}

TEST_F(IdxTest, WrongMagic) {
  expect_contains(refusal([&] {
                    (void)read_idx(write("a", Bytes{'l', 'a', 'b', 'e', 'l'}), 3);
                  }),
                  {"a: ", "magic number 0x6c616265", "expected 0x00000803", "unsigned bytes"});
  expect_contains(refusal([&] {
                    (void)read_idx(write("b", idx({2}, {1, 2})), 3);
                  }),
                  {"0x00000801", "expected 0x00000803", "1 dimension(s)"});
  expect_contains(refusal([&] {
                    (void)read_idx(write("c", idx({2}, {1, 2}, 0x0D)), 1);
                  }),
                  {"0x00000d01", "expected 0x00000801"});
}

TEST_F(IdxTest, TruncatedPlainFile) {
  expect_contains(refusal([&] { (void)read_idx(write("a", Bytes{}), 1); }),
                  {"has 0 bytes", "too few"});
  expect_contains(refusal([&] {
                    (void)read_idx(write("b", Bytes{0, 0, 8, 3, 0, 0}), 3);
                  }),
                  {"header ends after 6 of 16 bytes"});
  Bytes short_file = idx({5, 4, 4}, ramp(80));
  short_file.resize(short_file.size() - 3);
  expect_contains(refusal([&] { (void)read_idx(write("c", short_file), 3); }),
                  {"truncated", "77 bytes follow", "5x4x4 images need 80"});
}

TEST_F(IdxTest, SizesThatNoFileHolds) {
  const Bytes huge = idx({0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF}, ramp(8));
  expect_contains(refusal([&] { (void)read_idx(write("a", huge), 3); }),
                  {"truncated", "more than any file holds"});
}

TEST_F(IdxTest, TrailingBytes) {
  expect_contains(refusal([&] {
                    (void)read_idx(write("a", idx({3}, {1, 2, 3, 4, 5})), 1);
                  }),
                  {"2 bytes too many", "3 labels need 3"});
}

TEST_F(IdxTest, NothingInIt) {
  expect_contains(refusal([&] {
                    (void)read_idx(write("a", idx({0, 28, 28}, {})), 3);
                  }),
                  {"0x28x28 images", "nothing"});
}

TEST_F(IdxTest, TruncatedGzipAtEveryLength) {
  const Bytes packed = gzip(idx({4, 5, 5}, ramp(100)));
  for (std::size_t size = 2; size < packed.size(); ++size) {
    const fs::path path =
        write("a.gz", Bytes(packed.begin(), packed.begin() + static_cast<long>(size)));
    expect_contains(refusal([&] { (void)read_idx(path, 3); }),
                    {"a.gz", "truncated gzip", fmt::format("after {} bytes", size)});
  }
}

TEST_F(IdxTest, CorruptGzip) {
  const Bytes packed = gzip(idx({4, 25, 25}, ramp(2500)));
  Bytes flipped = packed;
  flipped[packed.size() / 2] ^= 0xFF;
  expect_contains(refusal([&] { (void)read_idx(write("a.gz", flipped), 3); }),
                  {"a.gz", "gzip data", "download the file again"});
  Bytes checksum = packed;
  checksum[packed.size() - 6] ^= 1;
  expect_contains(refusal([&] { (void)read_idx(write("b.gz", checksum), 3); }),
                  {"b.gz", "corrupt gzip data", "incorrect data check"});
  Bytes garbage = packed;
  garbage.insert(garbage.end(), {'j', 'u', 'n', 'k'});
  expect_contains(refusal([&] { (void)read_idx(write("c.gz", garbage), 3); }),
                  {"c.gz", "corrupt gzip data", "incorrect header check"});
  expect_contains(refusal([&] { (void)read_idx(write("d.gz", ramp(50)), 3); }),
                  {"d.gz", "is not gzip data", "0x1f 0x8b"});
  expect_contains(refusal([&] { (void)read_idx(write("e.gz", Bytes{}), 3); }),
                  {"e.gz", "is not gzip data", "is empty"});
}

TEST_F(IdxTest, CountsOfImagesAndLabelsDiffer) {
  const fs::path images = write("i", idx({3, 2, 2}, ramp(12)));
  const fs::path labels = write("l", idx({2}, {0, 1}));
  expect_contains(refusal([&] { (void)read_idx_pair(images, labels, 10); }),
                  {images.string(), "3 images", labels.string(), "2 labels"});
}

TEST_F(IdxTest, LabelOutsideTheClasses) {
  const fs::path images = write("i", idx({3, 2, 2}, ramp(12)));
  const fs::path labels = write("l", idx({3}, {0, 10, 46}));
  expect_contains(refusal([&] { (void)read_idx_pair(images, labels, 10); }),
                  {labels.string(), "label 10 of sample 1", "10 classes (0 to 9)", "is 46"});
  EXPECT_EQ(read_idx_pair(images, labels, 47).classes, 47);
}

void expect_csv_samples(const Dataset& data, std::int64_t side, const std::vector<int>& labels) {
  ASSERT_EQ(data.count(), static_cast<std::int64_t>(labels.size()));
  EXPECT_EQ(data.height, side);
  EXPECT_EQ(data.width, side);
  for (std::int64_t row = 0; row < data.count(); ++row) {
    EXPECT_EQ(data.labels[static_cast<std::size_t>(row)], labels[static_cast<std::size_t>(row)]);
    for (std::int64_t i = 0; i < side * side; ++i) {
      EXPECT_EQ(data.sample(row)[static_cast<std::size_t>(i)], (row * 97 + i * 31) % 256);
    }
  }
}

TEST_F(CsvTest, ReadsKagglesFormInItsVariants) {
  const std::vector<int> labels = {5, 0, 4, 1, 9};
  const std::string text = csv_text(6, labels);
  expect_csv_samples(read_csv(write("a.csv", text), 10), 6, labels);
  expect_csv_samples(read_csv(write("no-header.csv", csv_text(6, labels, false)), 10), 6, labels);
  expect_csv_samples(read_csv(write("packed.csv.gz", gzip({text.begin(), text.end()})), 10), 6,
                     labels);
  std::string windows = "\xEF\xBB\xBF";
  for (const char c : text) windows += c == '\n' ? std::string("\r\n") : std::string(1, c);
  expect_csv_samples(read_csv(write("windows.csv", windows), 10), 6, labels);
  expect_csv_samples(read_csv(write("no-end.csv", text.substr(0, text.size() - 1)), 10), 6, labels);
  expect_csv_samples(read_csv(write("blank-end.csv", text + "\n"), 10), 6, labels);
}

TEST_F(CsvTest, EmptyFile) {
  const fs::path path = write("a.csv", std::string());
  expect_contains(refusal([&] { (void)read_csv(path, 10); }),
                  {path.string() + ":1", "is empty", "label,pixel0"});
  const fs::path header = write("b.csv", csv_text(2, {}));
  expect_contains(refusal([&] { (void)read_csv(header, 10); }), {"b.csv:2", "no rows"});
  const fs::path blank = write("c.csv", csv_text(2, {}) + "\n");
  expect_contains(refusal([&] { (void)read_csv(blank, 10); }), {"c.csv:2", "no rows"});
}

TEST_F(CsvTest, HeaderWithoutLabel) {
  const fs::path path = write("test.csv", std::string("pixel0,pixel1\n1,2\n"));
  expect_contains(refusal([&] { (void)read_csv(path, 10); }),
                  {"test.csv:1", "'pixel0'", "expected 'label'", "without labels"});
  const fs::path other = write("x.csv", std::string("digit,pixel0\n1,2\n"));
  expect_contains(refusal([&] { (void)read_csv(other, 10); }), {"'digit'", "expected 'label'"});
}

TEST_F(CsvTest, MissingColumn) {
  const fs::path path = write("a.csv", std::string("label,pixel0,pixel1,pixel3\n1,2,3,4\n"));
  expect_contains(refusal([&] { (void)read_csv(path, 10); }),
                  {"a.csv:1", "4 columns", "3 pixels", "square", "785", "column 4 is 'pixel3'",
                   "'pixel2' was expected"});
  const fs::path bare = write("b.csv", std::string("1,2,3,4\n"));
  expect_contains(refusal([&] { (void)read_csv(bare, 10); }), {"b.csv:1", "3 pixels", "square"});
  const fs::path none = write("c.csv", std::string("label\n1\n"));
  expect_contains(refusal([&] { (void)read_csv(none, 10); }), {"c.csv:1", "0 pixels"});
}

struct BadRow {
  std::string row;
  std::vector<std::string> message;
};

TEST_F(CsvTest, BadRowsAreNamedByLineAndColumn) {
  const std::vector<BadRow> rows = {
      {"1,2,3,4", {"4 columns, expected 5"}},
      {"1,2,3,4,5,6", {"6 columns, expected 5"}},
      {"1,2,3,4,", {"column 5 (pixel3)", "is empty"}},
      {"1,2,,4,5", {"column 3 (pixel1)", "is empty"}},
      {",2,3,4,5", {"column 1 (label)", "is empty"}},
      {"1,2,x,4,5", {"column 3 (pixel1)", "'x' is not a whole number", "0 to 255"}},
      {"1,2,3.5,4,5", {"column 3 (pixel1)", "'3.5' is not a whole number"}},
      {"1,2, 3,4,5", {"column 3 (pixel1)", "' 3' is not a whole number"}},
      {"1,256,3,4,5", {"column 2 (pixel0)", "256 is out of range", "0 to 255"}},
      {"1,2,3,4,1000", {"column 5 (pixel3)", "1000 is out of range"}},
      {"1,2,3,4,99999999999999999999", {"column 5 (pixel3)", "out of range"}},
      {"1,-2,3,4,5", {"column 2 (pixel0)", "-2 is out of range"}},
      {"10,2,3,4,5", {"column 1 (label)", "10 is outside the 10 classes (0 to 9)"}},
      {"-1,2,3,4,5", {"column 1 (label)", "-1 is out of range"}},
      {"", {"1 columns, expected 5"}},
  };
  for (const BadRow& bad : rows) {
    const std::string text = csv_text(2, {1, 2}) + bad.row + "\n" + "1,2,3,4,5\n";
    const fs::path path = write("a.csv", text);
    const std::string message = refusal([&] { (void)read_csv(path, 10); });
    expect_contains(message, {path.string() + ":4: "});
    expect_contains(message, bad.message);
  }
}

// The size at the end of a gzip file is anybody's word: it must not make us allocate gigabytes.
TEST_F(IdxTest, AForgedGzipSizeTakesLittleMemory) {
  Bytes noise(std::size_t{5} << 20);
  PhiloxSequence random(1, RandomStream::synthetic, 0);
  for (std::uint8_t& byte : noise) byte = static_cast<std::uint8_t>(random.next());
  Bytes file = gzip(noise);
  std::fill(file.end() - 4, file.end(), std::uint8_t{0xff});
  const fs::path path = write("forged.gz", file);
  const std::int64_t before = allocated_bytes();
  expect_contains(refusal([&] { (void)read_idx(path, 1); }), {"forged.gz", "gzip data"});
  EXPECT_LT(allocated_bytes() - before, std::int64_t{200} << 20);
}

}  // namespace
}  // namespace ridgeline
