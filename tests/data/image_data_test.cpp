// Folders of images as datasets: layouts, what is wrong with them, batches, broken files, checks.

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <numeric>

#include "data/catalog.h"
#include "data/check.h"
#include "data/image_folder.h"
#include "data/loader.h"
#include "data/pack.h"
#include "data/sample_reader.h"
#include "support/images.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;

class ImageData : public FileTest {
 protected:
  [[nodiscard]] Split load(const std::string& name, FrameSize image = {}) const {
    return load_dataset((folder_ / name).string(), {.image = image});
  }
  [[nodiscard]] std::string refused(const std::string& name) const {
    return refusal([&] { (void)load(name); });
  }
  static Bytes tiny(int seed) { return jpeg(picture(20, 16, seed), 20, 16); }
};

TEST_F(ImageData, FoldersNumberTheirClassesByName) {
  write_class_folders(folder_ / "d/train", {"zebra", "Ant", "bee"}, 2);
  write_class_folders(folder_ / "d/val", {"bee", "zebra"}, 1, 50);
  write_file(folder_ / "d/train/bee/deep/er/x.PNG", png(picture(9, 9), 9, 9));
  write_file(folder_ / "d/train/bee/notes.txt", {'h', 'i'});
  write_file(folder_ / "d/train/.hidden/x.jpg", tiny(1));
  const Split split = load("d");
  EXPECT_EQ(split.train.class_names, (std::vector<std::string>{"Ant", "bee", "zebra"}));
  EXPECT_EQ(split.train.labels, (std::vector<std::int32_t>{0, 0, 1, 1, 1, 2, 2}));
  EXPECT_EQ(split.test.labels, (std::vector<std::int32_t>{1, 2}));
  EXPECT_EQ(split.train.images->name(4), (folder_ / "d/train/bee/deep/er/x.PNG").string());
  EXPECT_EQ(split.train.height, 224);
  EXPECT_EQ(split.train.channels, 3);
  EXPECT_TRUE(split.train.photos);
  expect_contains(split.train.source, {"image folder", "7 + 2"});
  EXPECT_EQ(load("d", {48, 32}).test.width, 32);
}

TEST_F(ImageData, FolderWithoutTrainIsOnePart) {
  write_class_folders(folder_ / "d", {"a", "b"}, 3);
  const Split split = load("d");
  EXPECT_EQ(split.train.count(), 6);
  EXPECT_TRUE(split.test.empty());
  const Split parts = hold_out(split.train, 2, 0);
  EXPECT_EQ(parts.train.count(), 4);
  EXPECT_EQ(parts.test.count(), 2);
  EXPECT_EQ(parts.test.image_numbers.size(), 2U);
  EXPECT_EQ(limit(split.train, 2).labels, (std::vector<std::int32_t>{0, 1}));
}

TEST_F(ImageData, FilesNamedByClass) {
  for (const char* part : {"d", "k/train"}) {
    for (int i = 0; i < 3; ++i) {
      write_file(folder_ / part / ("dog." + std::to_string(i) + ".jpg"), tiny(i));
      write_file(folder_ / part / ("cat." + std::to_string(i) + ".jpg"), tiny(i + 9));
    }
    const Split split = load(part == std::string("d") ? "d" : "k");
    EXPECT_EQ(split.train.class_names, (std::vector<std::string>{"cat", "dog"}));
    EXPECT_EQ(split.train.labels, (std::vector<std::int32_t>{0, 0, 0, 1, 1, 1}));
  }
}

TEST_F(ImageData, LabelledFiles) {
  for (int i = 0; i < 3; ++i) write_file(folder_ / "d" / (std::to_string(i) + ".jpg"), tiny(i));
  (void)write("d/labels.csv", std::string("file,class\r\n2.jpg,7\r\n0.jpg,11\r\n1.jpg,0\r\n"));
  const Split split = load("d");
  EXPECT_EQ(split.train.labels, (std::vector<std::int32_t>{7, 11, 0}));
  EXPECT_EQ(split.train.classes, 12);
  EXPECT_EQ(split.train.images->name(0), (folder_ / "d/2.jpg").string());
  (void)write("d/labels.csv", std::string("2.jpg,7\n0.jpg,-1\nnone.jpg,2\n"));
  expect_contains(refused("d"), {"labels.csv line 2", "0.jpg,-1", "problems in all"});
}

TEST_F(ImageData, TinyImageNet) {
  for (const char* id : {"n02", "n01", "n03"}) {
    for (int i = 0; i < 2; ++i) {
      write_file(folder_ / "d/train" / id / "images" /
                     (std::string(id) + "_" + std::to_string(i) + ".JPEG"),
                 tiny(i));
    }
  }
  write_file(folder_ / "d/val/images/val_0.JPEG", tiny(5));
  (void)write("d/val/val_annotations.txt", std::string("val_0.JPEG\tn03\t0\t0\t62\t62\n"));
  (void)write("d/words.txt", std::string("n01\tgoldfish, Carassius\nn03\tnewt\n"));
  const Split split = load("d");
  EXPECT_EQ(split.train.height, 64);
  EXPECT_EQ(split.train.class_names,
            (std::vector<std::string>{"goldfish, Carassius", "n02", "newt"}));
  EXPECT_EQ(split.train.labels, (std::vector<std::int32_t>{0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(split.test.labels, (std::vector<std::int32_t>{2}));
  (void)write("d/val/val_annotations.txt", std::string("val_0.JPEG\tn09\t0\t0\t62\t62\n"));
  expect_contains(refused("d"), {"val_annotations.txt line 1", "n09"});
}

TEST_F(ImageData, TinyImageNetWithItsTestImagesMovedToClassFolders) {
  write_class_folders(folder_ / "d/train", {"n01", "n02"}, 2);
  write_class_folders(folder_ / "d/val", {"n01", "n02"}, 1, 9);
  fs::create_directories(folder_ / "d/val/images");
  (void)write("d/val/val_annotations.txt", std::string("val_0.JPEG\tn02\t0\t0\t62\t62\n"));
  (void)write("d/words.txt", std::string("n01\tgoldfish\nn02\tnewt\n"));
  const Split split = load("d");
  EXPECT_EQ(split.test.labels, (std::vector<std::int32_t>{0, 1}));
  EXPECT_EQ(split.train.class_names, (std::vector<std::string>{"goldfish", "newt"}));
  EXPECT_EQ(split.train.height, 64);
  write_file(folder_ / "d/val/images/val_0.JPEG", tiny(3));  // copied, not moved
  EXPECT_EQ(load("d").test.labels, (std::vector<std::int32_t>{0, 1}));
}

TEST_F(ImageData, AnnotatedTestImagesMustBeThere) {
  write_class_folders(folder_ / "d/train", {"n01", "n02"}, 2);
  write_file(folder_ / "d/val/images/val_1.JPEG", tiny(1));
  (void)write("d/val/val_annotations.txt", std::string("val_1.JPEG\tn01\nval_2.JPEG\tn02\n"));
  expect_contains(refused("d"),
                  {"val_annotations.txt line 2", "'val_2.JPEG'", "not in val/images"});
}

TEST_F(ImageData, AFolderOfDataSetsIsNoDataSet) {
  write_class_folders(folder_ / "all/tiny/train", {"a", "b"}, 1);
  write_class_folders(folder_ / "all/other/train", {"a", "b"}, 1);
  expect_contains(refused("all"), {"is not a folder of classes", "'other'", "all/other"});
  write_class_folders(folder_ / "above/pets", {"cat", "dog"}, 1);
  expect_contains(refused("above"), {"only one class", "did you mean", "above/pets"});
}

TEST_F(ImageData, ImagesOfOtherKindsAreCountedAndNamed) {
  write_class_folders(folder_ / "d", {"a", "b"}, 2);
  EXPECT_TRUE(load("d").skipped.empty());
  write_file(folder_ / "d/a/x.webp", {'R', 'I', 'F', 'F'});
  write_file(folder_ / "d/b/deep/y.BMP", {'B', 'M'});
  write_file(folder_ / "d/b/notes.txt", {'h', 'i'});
  expect_contains(skipped_text(load("d").skipped),
                  {"2 image files are passed over", "a/x.webp", "b/deep/y.BMP"});
  const DataCheck check = check_data(folder_ / "d", [](std::int64_t, std::int64_t) {});
  ASSERT_EQ(check.problems.size(), 2U);
  EXPECT_EQ(check.problems[0].kind, "skipped image");
}

TEST_F(ImageData, ATestPartThatCannotBeReadIsFoundAtOnce) {
  write_class_folders(folder_ / "d/train", {"a", "b"}, 1);
  for (const char* name : {"a", "b"}) write_file(folder_ / "d/val" / name / "0.jpg", {'x'});
  const Split split = load("d", {16, 16});
  EXPECT_NO_THROW(check_readable(split.train));
  expect_contains(refusal([&] { check_readable(split.test); }), {"not one of the 2 images"});
  expect_contains(refusal([&] {
                    (void)write_pack(split, folder_ / "p", {.skip_broken = true},
                                     [](std::int64_t, std::int64_t) {});
                  }),
                  {"no test image is left"});
}

TEST_F(ImageData, Cifar) {
  const auto batch = [](int count, int labels, int last) {
    Bytes bytes;
    for (int i = 0; i < count; ++i) {
      for (int l = 0; l + 1 < labels; ++l) bytes.push_back(3);
      bytes.push_back(static_cast<std::uint8_t>(last));
      const Bytes pixels = ramp(3072);
      bytes.insert(bytes.end(), pixels.begin(), pixels.end());
    }
    return bytes;
  };
  write_file(folder_ / "ten/cifar-10-batches-bin/data_batch_1.bin", batch(2, 1, 4));
  write_file(folder_ / "ten/cifar-10-batches-bin/data_batch_2.bin", batch(1, 1, 9));
  write_file(folder_ / "ten/cifar-10-batches-bin/test_batch.bin", batch(1, 1, 0));
  const Split ten = load("ten");
  EXPECT_EQ(ten.train.labels, (std::vector<std::int32_t>{4, 4, 9}));
  EXPECT_EQ(ten.test.count(), 1);
  EXPECT_EQ(ten.train.channels, 3);
  EXPECT_TRUE(
      std::equal(ten.train.pixels.begin(), ten.train.pixels.begin() + 3072, ramp(3072).begin()));

  write_file(folder_ / "hundred/train.bin", batch(2, 2, 99));
  write_file(folder_ / "hundred/test.bin", batch(1, 2, 17));
  EXPECT_EQ(load("hundred").train.labels, (std::vector<std::int32_t>{99, 99}));
  EXPECT_EQ(load("hundred/test.bin").train.classes, 100);
  EXPECT_EQ(load("ten/cifar-10-batches-bin/data_batch_1.bin").train.classes, 10);

  write_file(folder_ / "ten/cifar-10-batches-bin/data_batch_2.bin", batch(1, 1, 10));
  expect_contains(refused("ten"), {"data_batch_2.bin", "label 10 of record 0"});
  write_file(folder_ / "ten/cifar-10-batches-bin/data_batch_2.bin", Bytes(3000));
  expect_contains(refused("ten"), {"data_batch_2.bin", "3000 bytes", "3073"});
  write_file(folder_ / "odd.bin", Bytes(100));
  expect_contains(refused("odd.bin"), {"CIFAR-10 records"});
}

TEST_F(ImageData, WrongFoldersAreTold) {
  fs::create_directories(folder_ / "empty");
  expect_contains(refused("empty"), {"it is empty", "a folder of images for each class"});
  write_class_folders(folder_ / "one/train", {"only"}, 2);
  expect_contains(refused("one"), {"only one class", "'only'"});
  write_class_folders(folder_ / "hole", {"a", "b"}, 1);
  fs::create_directories(folder_ / "hole/c");
  expect_contains(refused("hole"), {"hole/c", "empty class", "data check"});
  fs::create_directories(folder_ / "none/a");
  fs::create_directories(folder_ / "none/b");
  expect_contains(refused("none"), {"none of its 2 folders contains a .jpg"});
  write_file(folder_ / "text/readme.txt", {'x'});
  expect_contains(refused("text"), {"no data of a known kind", "readme.txt"});
  write_class_folders(folder_ / "extra/train", {"a", "b"}, 1);
  write_class_folders(folder_ / "extra/test", {"a", "z"}, 1);
  expect_contains(refused("extra"), {"test/z", "train does not have"});
}

TEST_F(ImageData, LoopsOfLinksEndTheWalk) {
  write_class_folders(folder_ / "d", {"a", "b"}, 1);
  fs::create_directory_symlink(folder_ / "d/a", folder_ / "d/a/again");
  expect_contains(refused("d"), {"d/a/again", "symbolic link", "leads back"});
  fs::remove(folder_ / "d/a/again");
  fs::create_symlink(folder_ / "d/a/self.jpg", folder_ / "d/a/self.jpg");
  expect_contains(refused("d"), {"self.jpg", "leads back to itself"});
  fs::remove(folder_ / "d/a/self.jpg");
  // A link to a folder elsewhere is followed, as torchvision does.
  write_class_folders(folder_ / "other", {"c"}, 1);
  fs::create_directory_symlink(folder_ / "other/c", folder_ / "d/c");
  EXPECT_EQ(load("d").train.count(), 3);
}

struct Epoch {
  Bytes pixels;
  std::vector<std::int32_t> labels;
  bool operator==(const Epoch&) const = default;
};

Epoch epoch_of(const Dataset& data, LoaderOptions options, std::int64_t number,
               std::int64_t first = 0) {
  Loader loader(data, options);
  loader.start_epoch(number, first);
  Epoch epoch;
  while (const std::optional<Batch> batch = loader.next()) {
    epoch.pixels.insert(epoch.pixels.end(), batch->pixels.begin(), batch->pixels.end());
    epoch.labels.insert(epoch.labels.end(), batch->labels.begin(), batch->labels.end());
  }
  return epoch;
}

class ThreadsImages : public ImageData {};

TEST_F(ThreadsImages, BatchesDoNotDependOnTheNumberOfWorkers) {
  write_class_folders(folder_ / "d", {"a", "b", "c"}, 5);
  const Dataset data = load("d", {24, 32}).train;
  const LoaderOptions options{.batch = 4, .shuffle = true, .seed = 3, .workers = 1, .crop = true};
  const Epoch one = epoch_of(data, options, 2);
  ASSERT_EQ(one.labels.size(), 15U);
  for (const int workers : {2, 3, 7}) {
    LoaderOptions more = options;
    more.workers = workers;
    more.prefetch = workers;
    EXPECT_TRUE(epoch_of(data, more, 2) == one) << workers;
  }
  EXPECT_FALSE(epoch_of(data, options, 3) == one);
}

TEST_F(ThreadsImages, EpochCanBeginAtAnyBatch) {
  write_class_folders(folder_ / "d", {"a", "b"}, 5);
  const Dataset data = load("d", {16, 16}).train;
  const LoaderOptions options{.batch = 3, .shuffle = true, .seed = 1, .workers = 2, .crop = true};
  const Epoch whole = epoch_of(data, options, 4);
  for (std::int64_t first = 0; first <= 4; ++first) {
    const Epoch rest = epoch_of(data, options, 4, first);
    const auto skipped = static_cast<std::size_t>(std::min<std::int64_t>(3 * first, 10));
    ASSERT_EQ(rest.labels.size(), 10 - skipped);
    EXPECT_TRUE(std::equal(rest.pixels.begin(), rest.pixels.end(),
                           whole.pixels.begin() + static_cast<std::ptrdiff_t>(skipped * 768)));
  }
}

TEST_F(ThreadsImages, BrokenImagesAreReplacedTheSameWayEveryTime) {
  write_class_folders(folder_ / "d", {"a", "b"}, 4);
  const Dataset sound = load("d", {16, 16}).train;
  const Epoch before = epoch_of(sound, {.batch = 8}, 0);
  write_file(folder_ / "d/a/1.jpg", {'n', 'o'});
  write_file(folder_ / "d/a/2.jpg", {});
  const Bytes cut = jpeg(picture(300, 300), 300, 300);
  write_file(folder_ / "d/b/3.jpg", Bytes(cut.begin(), cut.begin() + 2000));
  const Dataset data = load("d", {16, 16}).train;
  for (const int workers : {1, 4}) {
    Loader loader(data, {.batch = 8, .workers = workers});
    loader.start_epoch(0);
    const std::optional<Batch> batch = loader.next();
    ASSERT_TRUE(batch);
    // 1 and 2 are replaced by 3, the last one by the first.
    EXPECT_EQ(std::vector<std::int32_t>(batch->labels.begin(), batch->labels.end()),
              (std::vector<std::int32_t>{0, 0, 0, 0, 1, 1, 1, 0}));
    const auto row = [&](std::span<const std::uint8_t> pixels, std::size_t i) {
      return Bytes(pixels.begin() + static_cast<std::ptrdiff_t>(i * 768),
                   pixels.begin() + static_cast<std::ptrdiff_t>((i + 1) * 768));
    };
    EXPECT_EQ(row(batch->pixels, 1), row(before.pixels, 3));
    EXPECT_EQ(row(batch->pixels, 2), row(before.pixels, 3));
    EXPECT_EQ(row(batch->pixels, 7), row(before.pixels, 0));
    EXPECT_EQ(row(batch->pixels, 4), row(before.pixels, 4));
    const std::vector<BrokenImage> broken = loader.broken();
    ASSERT_EQ(broken.size(), 3U);
    EXPECT_EQ(broken[0].sample, 1);
    expect_contains(broken[0].reason, {"a/1.jpg", "neither a JPEG nor a PNG"});
    expect_contains(broken[1].reason, {"a/2.jpg", "is empty"});
    expect_contains(broken[2].reason, {"b/3.jpg", "truncated"});
  }
  Loader strict(data, {.batch = 8, .workers = 3, .strict = true});
  strict.start_epoch(0);
  expect_contains(refusal([&] { (void)strict.next(); }), {"a/1.jpg"});
}

TEST_F(ImageData, NothingReadableIsAnError) {
  write_class_folders(folder_ / "d", {"a", "b"}, 1);
  for (const char* name : {"a", "b"}) write_file(folder_ / "d" / name / "0.jpg", {'x', 'y'});
  const Dataset data = load("d").train;
  Loader loader(data, {.batch = 2});
  loader.start_epoch(0);
  expect_contains(refusal([&] { (void)loader.next(); }), {"not one of the 2 images", "a/0.jpg"});
}

TEST_F(ImageData, UnreadableAndVanishedFilesAreBroken) {
  write_class_folders(folder_ / "d", {"a", "b"}, 2);
  const Dataset data = load("d", {16, 16}).train;
  fs::remove(folder_ / "d/a/0.jpg");
  fs::remove(folder_ / "d/b/1.jpg");
  fs::create_directory(folder_ / "d/b/1.jpg");
  Loader loader(data, {.batch = 4});
  loader.start_epoch(0);
  ASSERT_TRUE(loader.next());
  const std::vector<BrokenImage> broken = loader.broken();
  ASSERT_EQ(broken.size(), 2U);
  expect_contains(broken[0].reason, {"cannot be opened", "No such file"});
  expect_contains(broken[1].reason, {"is not a regular file"});
}

TEST_F(ImageData, DataInMemoryIsResizedAndCroppedToo) {
  const Split own = load_dataset("synthetic:3x20x20:4:12", {});
  const Split resized = load_dataset("synthetic:3x20x20:4:12", {.image = {32, 24}});
  EXPECT_EQ(resized.train.sample_bytes(), 3U * 32 * 24);
  const Epoch epoch = epoch_of(resized.train, {.batch = 5}, 0);
  EXPECT_EQ(epoch.labels, own.train.labels);
  EXPECT_EQ(epoch.pixels.size(), 12U * 3 * 32 * 24);
  const Epoch crops = epoch_of(own.train, {.batch = 5, .crop = true}, 0);
  EXPECT_EQ(crops.labels, own.train.labels);
  EXPECT_NE(crops.pixels, own.train.pixels);
  const Dataset memory = in_memory(resized.train, 2);
  EXPECT_EQ(memory.pixels, epoch.pixels);
  EXPECT_EQ(memory.images, nullptr);
}

TEST_F(ImageData, CheckFindsWhatIsWrong) {
  write_class_folders(folder_ / "d/train", {"a", "b"}, 3);
  write_class_folders(folder_ / "d/val", {"a", "b"}, 1, 30);
  const auto nothing = [](std::int64_t, std::int64_t) {};
  const DataCheck sound = check_data(folder_ / "d", nothing);
  EXPECT_TRUE(sound.problems.empty());
  EXPECT_EQ(sound.train_count, 6);
  EXPECT_EQ(sound.classes[1].test, 1);
  EXPECT_GT(sound.most_width, sound.least_width);

  fs::copy_file(folder_ / "d/train/a/0.jpg", folder_ / "d/val/b/copy.jpg");
  write_file(folder_ / "d/train/b/bad.png", {1, 2, 3});
  fs::create_directories(folder_ / "d/train/c");
  fs::create_directories(folder_ / "d/val/zz");
  const DataCheck check = check_data(folder_ / "d", nothing);
  std::string text;
  for (const DataProblem& p : check.problems) text += p.kind + "|" + p.where + "|" + p.what + "\n";
  EXPECT_EQ(check.problems.size(), 4U) << text;
  expect_contains(
      text, {"empty class|" + (folder_ / "d/train/c").string(), "label|",
             "val/zz|is a class that train does not have", "broken image|", "bad.png|is neither",
             "duplicate|", "in the other part, with another label"});
}

TEST_F(ImageData, RealPhotographs) {
  const fs::path folder = test_data() / "squeezenet1_1/images";
  if (test_data().empty() || !fs::exists(folder)) {
    GTEST_SKIP() << "no photographs at " << folder
                 << "; set RIDGELINE_TEST_DATA to the folder that holds them";
  }
  const Split split = load_dataset(folder.string(), {.classes = 1000});
  EXPECT_EQ(split.train.count(), 33);
  EXPECT_EQ(split.train.classes, 1000);
  EXPECT_EQ(split.train.labels[0], 1);
  const DataCheck check = check_data(folder, [](std::int64_t, std::int64_t) {});
  EXPECT_TRUE(check.problems.empty());
}

}  // namespace
}  // namespace ridgeline
