// Images that a GPU finishes or decodes, against those of the host. Skipped where there is none.

#include <gtest/gtest.h>

#include <cmath>
#include <iostream>

#include "base/error.h"
#include "data/image_folder.h"
#include "devices/image_place.h"
#include "support/images.h"
#include "train/trainer.h"

namespace ridgeline {
namespace {

using namespace ridgeline::testing;

struct SeenImages {
  std::vector<std::int32_t> samples, labels;
  Bytes pixels;
  bool operator==(const SeenImages&) const = default;
};

class GpuImages : public FileTest {
 protected:
  void SetUp() override {
    FileTest::SetUp();
    if (const std::string reason = cuda_unavailable(); !reason.empty()) GTEST_SKIP() << reason;
    device_ = make_device("cuda:0");
  }

  // Every kind of file, of many sizes.
  [[nodiscard]] Dataset all_kinds(FrameSize target) {
    int number = 0;
    const auto add = [&](const Bytes& file, const char* ending) {
      write_file(
          folder_ / fmt::format("photos/{}/{:03}.{}", number % 2 == 0 ? "a" : "b", number, ending),
          file);
      ++number;
    };
    for (const FrameSize size : {FrameSize{90, 61}, FrameSize{301, 200}, FrameSize{64, 64},
                                 FrameSize{33, 470}, FrameSize{17, 19}, FrameSize{375, 500}}) {
      const Bytes rgb = picture(size.width, size.height, size.width);
      for (const auto& [horizontal, vertical] : {std::pair{1, 1}, {2, 1}, {2, 2}, {1, 2}}) {
        add(jpeg(rgb, size.width, size.height,
                 {.quality = 60 + number,
                  .horizontal = horizontal,
                  .vertical = vertical,
                  .orientation = number % 9}),
            "jpg");
      }
      add(jpeg(rgb, size.width, size.height, {.grey = true}), "jpg");
      add(jpeg(rgb, size.width, size.height, {.progressive = true}), "jpg");
      add(jpeg(rgb, size.width, size.height, {.cmyk = true}), "jpg");
      add(png(rgb, size.width, size.height), "png");
    }
    return listed_datasets(*list_images(folder_ / "photos"), target).train;
  }

  // Smooth photographs of the usual kind, as evaluation sees them at nearly their own size.
  [[nodiscard]] Dataset usual(const JpegOptions& options) {
    for (int i = 0; i < 12; ++i) {
      write_file(folder_ / fmt::format("usual/{}/{}.jpg", i % 2 == 0 ? "a" : "b", i),
                 jpeg(picture(120 + i, 130, i), 120 + i, 130, options));
    }
    return listed_datasets(*list_images(folder_ / "usual"), {112, 112}).train;
  }

  SeenImages run_epoch(Loader& loader, const Dataset& data, std::int64_t epoch,
                       std::int64_t first = 0) {
    SeenImages seen;
    loader.start_epoch(epoch, first);
    while (const std::optional<Batch> batch = loader.next()) {
      seen.samples.insert(seen.samples.end(), batch->samples.begin(), batch->samples.end());
      seen.labels.insert(seen.labels.end(), batch->labels.begin(), batch->labels.end());
      const auto rows = static_cast<std::size_t>(batch->rows);
      Bytes pixels(rows * data.sample_bytes());
      if (batch->place != nullptr) {
        const DeviceMemory memory(*device_, pixels.size());
        batch->place->deliver(batch->slot, rows, memory.data());
        device_->download(pixels.data(), memory.data(), pixels.size());
        device_->synchronize();
      } else {
        pixels.assign(batch->pixels.begin(), batch->pixels.end());
      }
      seen.pixels.insert(seen.pixels.end(), pixels.begin(), pixels.end());
    }
    return seen;
  }

  // Empty where it can be used; GTEST_SKIP belongs into the test itself.
  [[nodiscard]] std::string missing(Decoder decoder) const { return refuse(decoder, *device_); }

  std::unique_ptr<Device> device_;
};

LoaderOptions image_options(int workers, bool crop) {
  return {.batch = 7, .shuffle = crop, .seed = 5, .workers = workers, .crop = crop};
}

TEST_F(GpuImages, OwnKernelsGiveTheHostsBits) {
  for (const FrameSize target : {FrameSize{32, 32}, FrameSize{112, 97}, FrameSize{224, 224}}) {
    const Dataset data = all_kinds(target);
    for (const bool crop : {true, false}) {
      const LoaderOptions options = image_options(3, crop);
      Loader host(data, options);
      const auto loader = make_loader(data, options, Decoder::gpu, *device_);
      for (const std::int64_t epoch : {0, 1, 2}) {
        const SeenImages expected = run_epoch(host, data, epoch);
        const SeenImages seen = run_epoch(*loader, data, epoch);
        EXPECT_EQ(seen.samples, expected.samples);
        EXPECT_EQ(seen.labels, expected.labels);
        ASSERT_TRUE(seen.pixels == expected.pixels) << target.height << " crop " << crop;
      }
    }
  }
}

TEST_F(GpuImages, EpochsBeginAnywhereAndEndEarly) {
  const Dataset data = all_kinds({64, 64});
  const LoaderOptions options = image_options(4, true);
  Loader host(data, options);
  const auto loader = make_loader(data, options, Decoder::gpu, *device_);
  loader->start_epoch(0);
  (void)loader->next();
  EXPECT_TRUE(run_epoch(*loader, data, 3, 2) == run_epoch(host, data, 3, 2));
}

// Parts that do not fit in are finished by the host, and the room has grown the next time.
TEST_F(GpuImages, LargeImagesGrowTheRoom) {
  const Bytes noisy = [] {
    Bytes rgb = picture(700, 600);
    for (std::size_t i = 0; i < rgb.size(); ++i) {
      rgb[i] = static_cast<std::uint8_t>(rgb[i] ^ (i * 2654435761U >> 25));
    }
    return rgb;
  }();
  for (int i = 0; i < 10; ++i) {
    write_file(folder_ / fmt::format("large/{}/{}.jpg", i % 2 == 0 ? "a" : "b", i),
               jpeg(noisy, 700, 600, {.quality = 98}));
  }
  const Dataset data = listed_datasets(*list_images(folder_ / "large"), {400, 400}).train;
  const LoaderOptions options{.batch = 5, .workers = 2};
  Loader host(data, options);
  const auto loader = make_loader(data, options, Decoder::gpu, *device_);
  const SeenImages expected = run_epoch(host, data, 0);
  for (int again = 0; again < 3; ++again) {
    EXPECT_TRUE(run_epoch(*loader, data, 0) == expected) << again;
  }
}

TEST_F(GpuImages, BrokenFilesAreReplacedAndNamed) {
  Dataset data = all_kinds({48, 48});
  Bytes cut = jpeg(picture(200, 150), 200, 150);
  cut.resize(cut.size() / 3);
  Bytes garbled = jpeg(picture(200, 150), 200, 150);
  for (std::size_t i = garbled.size() / 2; i + 2 < garbled.size(); ++i) garbled[i] = 0;
  write_file(folder_ / "photos/a/cut.jpg", cut);
  write_file(folder_ / "photos/b/garbled.jpg", garbled);
  data = listed_datasets(*list_images(folder_ / "photos"), {48, 48}).train;
  for (const Decoder decoder : {Decoder::gpu, Decoder::nvjpeg, Decoder::nvjpeg_cuda}) {
    if (!missing(decoder).empty()) continue;
    const LoaderOptions options = image_options(2, false);
    Loader host(data, options);
    const auto loader = make_loader(data, options, decoder, *device_);
    const SeenImages expected = run_epoch(host, data, 0), seen = run_epoch(*loader, data, 0);
    EXPECT_EQ(seen.labels, expected.labels) << name_of(decoder);
    EXPECT_EQ(seen.samples, expected.samples);
    bool named = false;
    for (const BrokenImage& image : loader->broken()) {
      named = named || image.reason.find("cut.jpg") != std::string::npos;
    }
    EXPECT_TRUE(named) << name_of(decoder);
  }
}

struct PixelDifference {
  double mean = 0.0;
  int most = 0;
};

PixelDifference difference_of(const Bytes& a, const Bytes& b) {
  PixelDifference found;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const int difference = std::abs(int{a[i]} - int{b[i]});
    found.mean += difference;
    found.most = std::max(found.most, difference);
  }
  found.mean /= static_cast<double>(a.size());
  return found;
}

// With colours at full size decoders round differently; where colours are sampled they also grow
// differently.
TEST_F(GpuImages, NvJpegIsCloseToLibjpeg) {
  int tried = 0;
  for (const Decoder decoder : {Decoder::nvjpeg, Decoder::nvjpeg_cuda}) {
    if (!missing(decoder).empty()) {
      std::cout << "without " << name_of(decoder) << ": " << missing(decoder) << '\n';
      continue;
    }
    ++tried;
    struct Kind {
      const char* name;
      JpegOptions options;
      double mean;
    };
    for (const Kind& kind :
         {Kind{"grey", {.grey = true}, 1.0}, Kind{"4:4:4", {.horizontal = 1, .vertical = 1}, 1.0},
          Kind{"4:2:0", {.horizontal = 2, .vertical = 2}, 4.0}}) {
      const Dataset data = usual(kind.options);
      const LoaderOptions options = image_options(2, false);
      Loader host(data, options);
      const auto loader = make_loader(data, options, decoder, *device_);
      const SeenImages expected = run_epoch(host, data, 0), seen = run_epoch(*loader, data, 0);
      ASSERT_EQ(seen.pixels.size(), expected.pixels.size());
      const PixelDifference found = difference_of(seen.pixels, expected.pixels);
      std::cout << name_of(decoder) << ' ' << decoder_version(decoder) << ", " << kind.name
                << ": mean difference " << found.mean << ", largest " << found.most << '\n';
      EXPECT_LT(found.mean, kind.mean) << name_of(decoder) << ' ' << kind.name;
      EXPECT_TRUE(run_epoch(*loader, data, 0) == seen) << "not the same again";
    }
  }
  if (tried == 0) GTEST_SKIP() << "nvJPEG is not here";
}

// Weights after training on crops are those of a host that decodes, bit for bit.
TEST_F(GpuImages, TrainingDoesNotDependOnWhoDecodes) {
  Split data;
  data.train = all_kinds({32, 32});
  data.test = data.train;
  std::vector<double> losses;
  std::vector<std::vector<StepRunner::NamedTensor>> weights;
  for (const Decoder decoder : {Decoder::cpu, Decoder::gpu}) {
    TrainConfig config;
    config.step.model.name = "mnist_cnn";
    config.step.model.channels = 3;
    config.step.model.height = config.step.model.width = 32;
    config.step.model.classes = 2;
    config.step.batch = 8;
    config.step.flip = true;
    config.step.mean = {0.5, 0.5, 0.5};
    config.step.deviation = {0.25, 0.25, 0.25};
    config.step.optimizer = SgdAttributes{.momentum = 0.9};
    config.plan.backend = "cuda";
    config.epochs = 3;
    config.workers = 3;
    config.crop = true;
    config.decoder = decoder;
    TrainObserver silent;
    Trainer trainer(config, data, make_device("cuda:0"));
    const TrainResult result = trainer.train(silent);
    losses.push_back(*result.final_test_loss);
    weights.push_back(trainer.runner().read_weights());
  }
  EXPECT_EQ(losses[0], losses[1]);
  ASSERT_EQ(weights[0].size(), weights[1].size());
  for (std::size_t i = 0; i < weights[0].size(); ++i) {
    EXPECT_TRUE(weights[0][i].bytes == weights[1][i].bytes) << weights[0][i].name;
  }
}

}  // namespace
}  // namespace ridgeline
