// Images that a device finishes: the steps it computes, on the host, against libjpeg-turbo and
// Resizer, and loaders whose batches are put together elsewhere.

#include "data/image_job.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "data/image_folder.h"
#include "data/loader.h"
#include "support/host_place.h"
#include "support/images.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;

Bytes pixels_for(const TransformRequest& request) {
  return Bytes(
      static_cast<std::size_t>(request.channels * request.target.height * request.target.width));
}

Bytes by_libjpeg(const Bytes& file, const TransformRequest& request) {
  ImageDecoder decoder;
  Resizer resizer;
  Bytes scratch, pixels = pixels_for(request);
  transform_image(decoder, resizer, {.bytes = file}, "test", request, scratch, pixels);
  return pixels;
}

bool takes(ImageJobMaker& maker, const Bytes& file, const TransformRequest& request) {
  return maker.make({.bytes = file}, request, ImageForm::blocks);
}

// Empty where the host is to decode the image.
Bytes by_steps(ImageJobMaker& maker, const Bytes& file, const TransformRequest& request) {
  if (!takes(maker, file, request)) return {};
  Bytes parts(maker.part_bytes()), pixels = pixels_for(request);
  const ImageJob job = maker.put(parts.data(), 0);
  finish_on_host(job, parts.data(), request.channels, pixels.data());
  return pixels;
}

struct Sampling {
  int horizontal, vertical;
};

TEST(ImageJob, EveryKindEqualsLibjpegBitForBit) {
  ImageJobMaker maker;
  int seed = 0;
  for (const Sampling sampling : {Sampling{1, 1}, Sampling{2, 1}, Sampling{2, 2}}) {
    for (const FrameSize size : {FrameSize{5, 5}, FrameSize{16, 16}, FrameSize{17, 31},
                                 FrameSize{90, 61}, FrameSize{150, 201}, FrameSize{37, 240}}) {
      for (const int quality : {30, 92, 100}) {
        const Bytes file = jpeg(picture(size.width, size.height, ++seed), size.width, size.height,
                                {.quality = quality,
                                 .horizontal = sampling.horizontal,
                                 .vertical = sampling.vertical,
                                 .grey = seed % 5 == 0,
                                 .orientation = seed % 9});
        for (const int side : {24, 130}) {
          for (const bool crop : {false, true}) {
            const TransformRequest request{.target = {side, side + 7},
                                           .channels = seed % 4 == 0 ? 1 : 3,
                                           .crop = crop,
                                           .seed = 3,
                                           .epoch = seed,
                                           .sample = side};
            const Bytes pixels = by_steps(maker, file, request);
            if (pixels.empty()) {
              // A crop that the host decodes at a smaller scale.
              EXPECT_TRUE(crop && side == 24) << size.width << 'x' << size.height;
              continue;
            }
            ASSERT_EQ(pixels, by_libjpeg(file, request))
                << size.width << 'x' << size.height << " quality " << quality << " sampled "
                << sampling.horizontal << 'x' << sampling.vertical << " to " << side
                << (crop ? " cropped" : "") << ", orientation " << seed % 9;
          }
        }
      }
    }
  }
}

TEST(ImageJob, ManyCropsOfAPhotographEqualLibjpegs) {
  ImageJobMaker maker;
  const Bytes file = jpeg(picture(333, 251), 333, 251);
  int taken = 0;
  for (std::int32_t sample = 0; sample < 60; ++sample) {
    const TransformRequest request{
        .target = {160, 160}, .crop = true, .seed = 11, .epoch = 2, .sample = sample};
    const Bytes pixels = by_steps(maker, file, request);
    if (pixels.empty()) continue;
    ++taken;
    ASSERT_EQ(pixels, by_libjpeg(file, request)) << sample;
  }
  EXPECT_EQ(taken, 60);
}

TEST(ImageJob, LeavesToTheHostWhatIsNotUsual) {
  ImageJobMaker maker;
  const int width = 64, height = 48;
  const Bytes rgb = picture(width, height);
  const TransformRequest request{.target = {40, 40}};
  EXPECT_TRUE(takes(maker, jpeg(rgb, width, height), request));
  EXPECT_FALSE(takes(maker, jpeg(rgb, width, height, {.progressive = true}), request));
  EXPECT_FALSE(takes(maker, jpeg(rgb, width, height, {.cmyk = true}), request));
  EXPECT_FALSE(takes(maker, jpeg(rgb, width, height, {.horizontal = 1, .vertical = 2}), request));
  EXPECT_FALSE(takes(maker, png(rgb, width, height), request));
  EXPECT_FALSE(takes(maker, {}, request));
  Bytes cut = jpeg(rgb, width, height);
  cut.resize(cut.size() * 2 / 3);
  EXPECT_FALSE(takes(maker, cut, request));
  EXPECT_FALSE(maker.make({.bytes = cut}, request, ImageForm::pixels));
  // And is ready for the next one.
  EXPECT_TRUE(takes(maker, jpeg(rgb, width, height), request));
}

TEST(ImageJob, DamagedFilesDoNoHarm) {
  ImageJobMaker maker;
  const Bytes whole = jpeg(picture(120, 90), 120, 90, {.quality = 95});
  const TransformRequest request{.target = {64, 64}};
  int made_anyway = 0;
  for (std::size_t i = 0; i < 400; ++i) {
    Bytes file = whole;
    for (std::size_t k = 0; k < 4; ++k) {
      file[(i * 7919 + k * 104729) % file.size()] = static_cast<std::uint8_t>(i * 31 + k * 17);
    }
    made_anyway += by_steps(maker, file, request).empty() ? 0 : 1;
  }
  EXPECT_LT(made_anyway, 400);
}

TEST(ImageJob, RealPhotographs) {
  const fs::path folder = test_data() / "squeezenet1_1/images";
  if (test_data().empty() || !fs::exists(folder)) {
    GTEST_SKIP() << "no photographs at " << folder
                 << "; set RIDGELINE_TEST_DATA to the folder that holds them";
  }
  ImageJobMaker maker;
  int taken = 0, seen = 0;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".JPEG") continue;
    const Bytes file = file_bytes(entry.path());
    const TransformRequest request{
        .target = {224, 224}, .crop = true, .seed = 1, .epoch = 4, .sample = ++seen};
    const Bytes pixels = by_steps(maker, file, request);
    if (pixels.empty()) continue;
    ++taken;
    ASSERT_EQ(pixels, by_libjpeg(file, request)) << entry.path();
  }
  EXPECT_GT(2 * taken, seen) << seen;
}

class ThreadsPlace : public FileTest {
 protected:
  // Two classes of JPEG files, of which some are of an unusual kind and one is broken.
  [[nodiscard]] Dataset mixed() {
    const Bytes rgb = picture(70, 50);
    write_class_folders(folder_ / "photos", {"a", "b"}, 9, 5);
    write_file(folder_ / "photos/a/progressive.jpg", jpeg(rgb, 70, 50, {.progressive = true}));
    write_file(folder_ / "photos/a/pixels.png", png(rgb, 70, 50));
    Bytes cut = jpeg(rgb, 70, 50);
    cut.resize(cut.size() / 2);
    write_file(folder_ / "photos/b/cut.jpg", cut);
    return listed_datasets(*list_images(folder_ / "photos"), {32, 32}).train;
  }
};

struct PlacedImages {
  std::vector<std::int32_t> samples, labels;
  Bytes pixels;
  bool operator==(const PlacedImages&) const = default;
};

PlacedImages placed_epoch(Loader& loader, const Dataset& data, std::int64_t epoch,
                          std::int64_t first = 0) {
  PlacedImages seen;
  loader.start_epoch(epoch, first);
  while (const std::optional<Batch> batch = loader.next()) {
    seen.samples.insert(seen.samples.end(), batch->samples.begin(), batch->samples.end());
    seen.labels.insert(seen.labels.end(), batch->labels.begin(), batch->labels.end());
    const auto rows = static_cast<std::size_t>(batch->rows);
    Bytes pixels(rows * data.sample_bytes());
    if (batch->place != nullptr) {
      batch->place->deliver(batch->slot, rows, std::as_writable_bytes(std::span(pixels)).data());
    } else {
      pixels.assign(batch->pixels.begin(), batch->pixels.end());
    }
    seen.pixels.insert(seen.pixels.end(), pixels.begin(), pixels.end());
  }
  return seen;
}

LoaderOptions shuffled_crops(int workers) {
  return {.batch = 4, .shuffle = true, .seed = 9, .workers = workers, .crop = true};
}

TEST_F(ThreadsPlace, BatchesAreThoseOfTheHost) {
  const Dataset data = mixed();
  for (const bool shuffled : {true, false}) {
    for (const int workers : {1, 3}) {
      LoaderOptions options = shuffled_crops(workers);
      options.shuffle = options.crop = shuffled;
      Loader host(data, options);
      const auto place = std::make_shared<HostPlace>();
      Loader loader(data, options, place);
      for (const std::int64_t epoch : {0, 1}) {
        EXPECT_EQ(placed_epoch(loader, data, epoch), placed_epoch(host, data, epoch)) << workers;
      }
      EXPECT_GT(place->taken, 0);
      ASSERT_EQ(loader.broken().size(), 1U);
      EXPECT_EQ(loader.broken()[0].reason, host.broken()[0].reason);
      EXPECT_NE(loader.broken()[0].reason.find("cut.jpg"), std::string::npos);
    }
  }
}

TEST_F(ThreadsPlace, AnEpochMayBeginInItsMiddleAndEndEarly) {
  const Dataset data = mixed();
  Loader host(data, shuffled_crops(2)),
      loader(data, shuffled_crops(2), std::make_shared<HostPlace>());
  loader.start_epoch(0);
  (void)loader.next();
  EXPECT_EQ(placed_epoch(loader, data, 3, 2), placed_epoch(host, data, 3, 2));
}

TEST_F(ThreadsPlace, WhatThePlaceCannotMakeTheHostDoes) {
  const Dataset data = mixed();
  for (const int refused : {0, 2}) {
    const auto place = std::make_shared<HostPlace>();
    place->refused_row = refused;
    Loader host(data, shuffled_crops(2)), loader(data, shuffled_crops(2), place);
    EXPECT_EQ(placed_epoch(loader, data, 1), placed_epoch(host, data, 1));
  }
}

TEST_F(ThreadsPlace, StrictEndsAtTheBrokenImageByName) {
  const Dataset data = mixed();
  LoaderOptions options = shuffled_crops(2);
  options.strict = true;
  Loader loader(data, options, std::make_shared<HostPlace>());
  try {
    (void)placed_epoch(loader, data, 0);
    FAIL() << "the broken image was not noticed";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("cut.jpg"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace ridgeline
