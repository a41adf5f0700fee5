// Finding datasets by name or path, making synthetic ones, and parting them.

#include "data/catalog.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "base/parallel.h"
#include "data/dataset.h"
#include "data/synthetic.h"
#include "support/data_files.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;

class CatalogTest : public FileTest {
 protected:
  void write_folder(const std::string& name, const std::string& separator, bool packed) const {
    fs::create_directories(folder_ / name);
    const auto put = [&](const std::string& file, const Bytes& bytes) {
      (void)write(name + "/" + file + (packed ? ".gz" : ""), packed ? gzip(bytes) : bytes);
    };
    put("train-images" + separator + "idx3-ubyte", idx({4, 3, 3}, ramp(36)));
    put("train-labels" + separator + "idx1-ubyte", idx({4}, {0, 1, 2, 3}));
    put("t10k-images" + separator + "idx3-ubyte", idx({2, 3, 3}, ramp(18)));
    put("t10k-labels" + separator + "idx1-ubyte", idx({2}, {4, 5}));
  }
};

TEST_F(CatalogTest, FoldersUnderTheirUsualNames) {
  int number = 0;
  for (const char* separator : {"-", "."}) {
    for (const bool packed : {false, true}) {
      const fs::path folder = folder_ / std::to_string(number++);
      write_folder(folder.filename().string(), separator, packed);
      const Split split = load_dataset(folder.string());
      EXPECT_EQ(split.train.count(), 4);
      EXPECT_EQ(split.train.pixels, ramp(36));
      EXPECT_EQ(split.test.labels, (std::vector<std::int32_t>{4, 5}));
      EXPECT_EQ(split.train.name, folder.filename().string());
      expect_contains(split.train.source, {"IDX folder", folder.string(), "4 + 2"});
    }
  }
}

TEST_F(CatalogTest, FolderWithoutATestPart) {
  write_folder("d", "-", false);
  fs::remove(folder_ / "d" / "t10k-images-idx3-ubyte");
  expect_contains(refusal([&] { (void)load_dataset((folder_ / "d").string()); }),
                  {"no images for the test part", "t10k-images-idx3-ubyte"});
  fs::remove(folder_ / "d" / "t10k-labels-idx1-ubyte");
  const Split split = load_dataset((folder_ / "d/").string());
  EXPECT_TRUE(split.test.empty());
  EXPECT_EQ(split.train.count(), 4);
  EXPECT_EQ(split.train.name, "d");
}

TEST_F(CatalogTest, FolderErrors) {
  expect_contains(refusal([&] { (void)load_dataset(folder_.string()); }),
                  {folder_.string(), "it is empty", "train-images-idx3-ubyte"});
  const fs::path folder = folder_ / "sizes";
  write_folder("sizes", "-", false);
  const Bytes other = idx({2, 2, 2}, ramp(8));
  (void)write("sizes/t10k-images-idx3-ubyte", other);
  expect_contains(refusal([&] { (void)load_dataset(folder.string()); }), {"3x3", "2x2"});
  (void)write("sizes/t10k-labels-idx1-ubyte", Bytes{1, 2});
  expect_contains(refusal([&] { (void)load_dataset(folder.string()); }),
                  {"t10k-labels", "too few"});
  expect_contains(
      refusal([&] { (void)load_dataset((folder / "train-images-idx3-ubyte").string()); }),
      {"neither a folder", "give the folder"});
}

TEST_F(CatalogTest, CsvFileHasNoTestPart) {
  const fs::path path = write("digits.csv", csv_text(3, {1, 2, 3}));
  const Split split = load_dataset(path.string());
  EXPECT_EQ(split.train.count(), 3);
  EXPECT_TRUE(split.test.empty());
  EXPECT_EQ(split.train.name, "digits.csv");
  expect_contains(split.train.source, {"CSV file", path.string(), "3"});
}

TEST_F(CatalogTest, UnknownNamesGetASuggestion) {
  expect_contains(refusal([] { (void)load_dataset("fashion-mnst"); }),
                  {"unknown dataset 'fashion-mnst'; did you mean 'fashion-mnist'?", "synthetic"});
  expect_contains(refusal([] { (void)load_dataset("MNIST"); }), {"did you mean 'mnist'?"});
  const std::string far = refusal([] { (void)load_dataset("places-365"); });
  expect_contains(far, {"unknown dataset 'places-365'. Known are fashion-mnist, mnist"});
  expect_contains(refusal([] { (void)load_dataset("nowhere/at/all"); }),
                  {"nowhere/at/all: no such file or folder"});
  expect_contains(refusal([] { (void)load_dataset("train.csv"); }), {"train.csv: no such file"});
}

TEST_F(CatalogTest, AbsentDatasetsSayHowToGetThem) {
  const std::array<fs::path, 2> folders = {folder_ / "a", folder_ / "b"};
  expect_contains(refusal([&] { (void)find_dataset_folder("fashion-mnist", folders); }),
                  {"'fashion-mnist' is not here", folders[0].string(), folders[1].string(),
                   "apt-get install dataset-fashion-mnist"});
  expect_contains(refusal([&] { (void)find_dataset_folder("mnist", folders); }),
                  {"'mnist' is not here", "train-images-idx3-ubyte.gz", "RIDGELINE_DATA"});
  fs::create_directory(folders[1]);
  EXPECT_EQ(find_dataset_folder("mnist", folders), folders[1]);
}

TEST_F(CatalogTest, NamedDatasetIsFoundThroughTheEnvironment) {
  const char* before = std::getenv("RIDGELINE_DATA");
  const std::string saved = before != nullptr ? before : "";
  setenv("RIDGELINE_DATA", folder_.c_str(), 1);
  write_folder("mnist", "-", true);
  const Split split = load_dataset("mnist");
  EXPECT_EQ(split.train.name, "mnist");
  EXPECT_EQ(split.train.source, "MNIST (" + (folder_ / "mnist").string() + "), 4 + 2");
  if (before != nullptr) {
    setenv("RIDGELINE_DATA", saved.c_str(), 1);
  } else {
    unsetenv("RIDGELINE_DATA");
  }
}

TEST(Catalog, FashionMnistOfDebian) {
  if (!fs::exists("/usr/share/datasets/fashion-mnist")) {
    GTEST_SKIP() << "Debian's dataset-fashion-mnist is not installed";
  }
  const Split split = load_dataset("fashion-mnist");
  EXPECT_EQ(split.train.count(), 60000);
  EXPECT_EQ(split.test.count(), 10000);
  EXPECT_EQ(split.train.pixels.size(), 47040000U);
  EXPECT_EQ(split.train.class_names[9], "Ankle boot");
  EXPECT_EQ(split.train.labels[0], 9);
  std::array<int, 10> frequency{};
  for (const std::int32_t label : split.train.labels) ++frequency[static_cast<std::size_t>(label)];
  for (const int count : frequency) EXPECT_EQ(count, 6000);
  if (std::getenv("RIDGELINE_DATA") == nullptr) {
    EXPECT_EQ(split.train.source, "Fashion-MNIST (Debian dataset-fashion-mnist), 60,000 + 10,000");
  }
}

TEST(Catalog, RealMnist) {
  const char* test_data = std::getenv("RIDGELINE_TEST_DATA");
  const fs::path folder = fs::path(test_data != nullptr ? test_data : "../shared/data") / "mnist";
  if (!fs::exists(folder)) {
    GTEST_SKIP() << "no MNIST at " << folder
                 << "; set RIDGELINE_TEST_DATA to the folder that holds it";
  }
  const Split split = load_dataset(folder.string());
  EXPECT_EQ(split.train.count(), 60000);
  EXPECT_EQ(split.test.count(), 10000);
  EXPECT_EQ(split.train.labels[0], 5);
  EXPECT_EQ(split.test.labels[0], 7);
  // The published mean of the training pixels, 0.1307 of white.
  const double sum = std::accumulate(split.train.pixels.begin(), split.train.pixels.end(), 0.0);
  EXPECT_NEAR(sum / 255.0 / static_cast<double>(split.train.pixels.size()), 0.1307, 5e-5);
}

TEST(Synthetic, IsAPureFunctionOfItsOptions) {
  const SyntheticOptions options{.channels = 3,
                                 .height = 9,
                                 .width = 11,
                                 .classes = 4,
                                 .count = 700,
                                 .test_count = 30,
                                 .seed = 8};
  const int threads = thread_count();
  set_thread_count(1);
  const Split one = make_synthetic(options);
  set_thread_count(3);
  const Split three = make_synthetic(options);
  set_thread_count(threads);
  EXPECT_EQ(one.train.pixels, three.train.pixels);
  EXPECT_EQ(one.test.pixels, three.test.pixels);
  EXPECT_EQ(one.train.pixels.size(), 700U * 3 * 9 * 11);
  EXPECT_EQ(one.train.labels, three.train.labels);
  SyntheticOptions other = options;
  other.seed = 9;
  EXPECT_NE(make_synthetic(other).train.pixels, one.train.pixels);
  // More samples leave the ones before as they are.
  other = options;
  other.count = 701;
  Bytes more = make_synthetic(other).train.pixels;
  more.resize(one.train.pixels.size());
  EXPECT_EQ(more, one.train.pixels);
}

TEST(Synthetic, ClassMeansTellTestSamplesApart) {
  const Split split = load_dataset("synthetic:2x12x10:5:300");
  const std::size_t size = split.train.sample_bytes();
  std::vector<std::vector<double>> means(5, std::vector<double>(size, 0.0));
  for (std::int64_t i = 0; i < split.train.count(); ++i) {
    auto& mean = means[static_cast<std::size_t>(split.train.labels[static_cast<std::size_t>(i)])];
    for (std::size_t p = 0; p < size; ++p) mean[p] += split.train.sample(i)[p] / 60.0;
  }
  int correct = 0;
  for (std::int64_t i = 0; i < split.test.count(); ++i) {
    std::vector<double> distance(5, 0.0);
    for (std::size_t c = 0; c < 5; ++c) {
      for (std::size_t p = 0; p < size; ++p) {
        const double difference = split.test.sample(i)[p] - means[c][p];
        distance[c] += difference * difference;
      }
    }
    const auto best = std::min_element(distance.begin(), distance.end()) - distance.begin();
    correct += best == split.test.labels[static_cast<std::size_t>(i)] ? 1 : 0;
  }
  EXPECT_EQ(split.test.count(), 50);
  EXPECT_EQ(correct, 50);
}

TEST(Synthetic, SpecIsReadOrRefused) {
  const Split split = load_dataset("synthetic:3x4x5:7:60");
  EXPECT_EQ(split.train.channels, 3);
  EXPECT_EQ(split.train.height, 4);
  EXPECT_EQ(split.train.width, 5);
  EXPECT_EQ(split.train.classes, 7);
  EXPECT_EQ(split.train.count(), 60);
  EXPECT_EQ(split.test.count(), 10);
  for (const char* bad : {"synthetic:", "synthetic:28x28", "synthetic:1x28x28:ten",
                          "synthetic:1x0x28", "synthetic:1x28x28:10:-5", "synthetic:1x28x28:10:5:6",
                          "synthetic:1x28x28:10:99999999999999999999"}) {
    expect_contains(refusal([&] { (void)load_dataset(bad); }),
                    {bad, "synthetic:CxHxW:CLASSES:COUNT", "synthetic:1x28x28:10:60000"});
  }
}

// Sorted by class, as folders are.
Dataset sorted_classes(const std::vector<int>& counts) {
  Dataset data;
  data.name = "sorted";
  data.height = data.width = 1;
  data.classes = static_cast<std::int32_t>(counts.size());
  for (std::size_t label = 0; label < counts.size(); ++label) {
    data.labels.insert(data.labels.end(), static_cast<std::size_t>(counts[label]),
                       static_cast<std::int32_t>(label));
  }
  data.pixels = ramp(data.labels.size());
  return data;
}

TEST(Dataset, LimitSamplesAllClassesByTheirShare) {
  const Dataset data = sorted_classes({100, 100, 50});
  const Dataset part = limit(data, 50);
  EXPECT_EQ(part.count(), 50);
  for (const auto& [label, count] : {std::pair{0, 20}, std::pair{1, 20}, std::pair{2, 10}}) {
    EXPECT_EQ(std::count(part.labels.begin(), part.labels.end(), label), count) << label;
  }
  EXPECT_TRUE(std::is_sorted(part.labels.begin(), part.labels.end())) << "the file's order";
  EXPECT_NE(part.pixels, Bytes(data.pixels.begin(), data.pixels.begin() + 50));
  EXPECT_EQ(limit(data, 50).pixels, part.pixels) << "the same sample every time";
  EXPECT_EQ(limit(sorted_classes({7, 7, 7}), 3).labels, (std::vector<std::int32_t>{0, 1, 2}));
}

TEST(Dataset, LimitTakesAllWhereThereAreNoMore) {
  const Dataset data = sorted_classes({5, 4});
  EXPECT_EQ(limit(data, 9).pixels, data.pixels);
  EXPECT_EQ(limit(data, 10).pixels, data.pixels);
  EXPECT_EQ(limit_note(data, 9), "");
  expect_contains(limit_note(data, 10), {"--limit 10", "9 samples", "all of them"});
  for (const std::int64_t bad : {-1, 0}) {
    expect_contains(refusal([&] { (void)limit(data, bad); }), {"at least 1"});
  }
}

TEST(Dataset, HoldOutPartsTheSamples) {
  Dataset data;
  data.name = "counted";
  data.height = data.width = 1;
  data.classes = 200;
  for (int i = 0; i < 200; ++i) {
    data.labels.push_back(i);
    data.pixels.push_back(static_cast<std::uint8_t>(i));
  }
  const Split split = hold_out(data, 50, 1);
  EXPECT_EQ(split.train.count(), 150);
  EXPECT_EQ(split.test.count(), 50);
  EXPECT_EQ(split.test.classes, 200);
  EXPECT_TRUE(std::is_sorted(split.train.labels.begin(), split.train.labels.end()));
  EXPECT_TRUE(std::is_sorted(split.test.labels.begin(), split.test.labels.end()));
  std::vector<std::int32_t> all = split.train.labels;
  all.insert(all.end(), split.test.labels.begin(), split.test.labels.end());
  std::sort(all.begin(), all.end());
  EXPECT_EQ(all, data.labels);
  for (std::size_t i = 0; i < split.test.labels.size(); ++i) {
    EXPECT_EQ(split.test.pixels[i], split.test.labels[i]);
  }
  EXPECT_EQ(hold_out(data, 50, 1).test.labels, split.test.labels);
  EXPECT_NE(hold_out(data, 50, 2).test.labels, split.test.labels);
  EXPECT_EQ(hold_out_fraction(data, 0.25, 1).test.labels, split.test.labels);
}

TEST(Dataset, HoldOutRefusesWhatLeavesNothing) {
  const Dataset data = load_dataset("synthetic:1x2x2:3:9").train;
  for (const std::int64_t bad : {-1, 0, 9, 10}) {
    expect_contains(refusal([&] { (void)hold_out(data, bad, 0); }),
                    {fmt::format("hold out {} of 9", bad), "between 1 and 8"});
  }
  for (const double bad : {-0.1, 0.0, 1.0, 2.0}) {
    expect_contains(refusal([&] { (void)hold_out_fraction(data, bad, 0); }), {"between 0 and 1"});
  }
  expect_contains(refusal([&] { (void)hold_out_fraction(data, 0.01, 0); }), {"hold out 0 of 9"});
}

TEST(Dataset, TellsWhatItIs) {
  EXPECT_EQ(load_dataset("synthetic:1x2x2:3:1200").train.text(),
            "synthetic: patterns and noise from seed 0, 1,200 samples of 1x2x2, 3 classes");
}

}  // namespace
}  // namespace ridgeline
