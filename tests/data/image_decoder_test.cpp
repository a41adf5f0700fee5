// Decoding: every kind of JPEG and PNG, parts of images, and what comes out of damaged files.

#include "data/image_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/philox.h"
#include "data/exif.h"
#include "support/images.h"

namespace ridgeline {
namespace {

using namespace ridgeline::testing;

struct Rgb {
  int r, g, b;
};

Rgb at(const DecodedArea& area, int x, int y) {
  const std::uint8_t* p = area.pixels.data +
                          static_cast<std::size_t>(y - area.y) * area.pixels.stride +
                          4 * static_cast<std::size_t>(x - area.x);
  return {p[0], p[1], p[2]};
}

// The mean difference of the colours from a picture.
double distance(const DecodedArea& area, const Bytes& rgb, int width, int height) {
  double sum = 0.0;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const std::size_t i = 3 * static_cast<std::size_t>(y * width + x);
      const Rgb pixel = at(area, x, y);
      sum += std::abs(pixel.r - rgb[i]) + std::abs(pixel.g - rgb[i + 1]) +
             std::abs(pixel.b - rgb[i + 2]);
    }
  }
  return sum / (3.0 * width * height);
}

TEST(ImageDecoder, EveryKindOfJpeg) {
  const int width = 83, height = 61;
  const Bytes rgb = picture(width, height);
  ImageDecoder decoder;
  for (const bool progressive : {false, true}) {
    for (const int horizontal : {1, 2}) {
      for (const int vertical : {1, 2}) {
        const Bytes file = jpeg(rgb, width, height,
                                {.quality = 95,
                                 .horizontal = horizontal,
                                 .vertical = vertical,
                                 .progressive = progressive});
        const ImageHeader header = decoder.open(file, "a.jpg");
        EXPECT_EQ(header.width, width);
        EXPECT_EQ(header.height, height);
        EXPECT_EQ(header.orientation, 1);
        EXPECT_LT(distance(decoder.decode({0, 0, width, height}, 8), rgb, width, height), 4.0);
        EXPECT_EQ(decoder.warnings(), 0);
      }
    }
  }
}

TEST(ImageDecoder, GreyAndInks) {
  const int width = 40, height = 30;
  Bytes rgb = picture(width, height);
  ImageDecoder decoder;
  const Bytes inks = jpeg(rgb, width, height, {.quality = 100, .cmyk = true});
  (void)decoder.open(inks, "cmyk.jpg");
  Bytes expected = rgb;  // light is the product of the stored ink and black
  for (std::uint8_t& value : expected) {
    value = static_cast<std::uint8_t>(std::lround(value * 200 / 255.0));
  }
  EXPECT_LT(distance(decoder.decode({0, 0, width, height}, 8), expected, width, height), 3.0);

  for (std::size_t i = 0; i < rgb.size(); i += 3) rgb[i + 1] = rgb[i + 2] = rgb[i];
  const Bytes grey = jpeg(rgb, width, height, {.quality = 95, .grey = true});
  (void)decoder.open(grey, "grey.jpg");
  EXPECT_LT(distance(decoder.decode({0, 0, width, height}, 8), rgb, width, height), 3.0);
}

TEST(ImageDecoder, EveryKindOfPngIsExact) {
  const int width = 37, height = 29;
  const Bytes rgb = picture(width, height);
  Bytes grey = rgb, from_palette = rgb;
  for (std::size_t i = 0; i < rgb.size(); i += 3) {
    grey[i + 1] = grey[i + 2] = grey[i];
    from_palette[i + 1] = static_cast<std::uint8_t>(255 - rgb[i]);
    from_palette[i + 2] = static_cast<std::uint8_t>(rgb[i] / 2);
  }
  ImageDecoder decoder;
  for (const bool interlaced : {false, true}) {
    for (const int bits : {8, 16}) {
      for (const int channels : {1, 2, 3, 4}) {
        const Bytes file =
            png(rgb, width, height, {.channels = channels, .bits = bits, .interlaced = interlaced});
        const ImageHeader header = decoder.open(file, "a.png");
        EXPECT_EQ(header.width, width);
        EXPECT_EQ(distance(decoder.decode({0, 0, width, height}, 8), channels < 3 ? grey : rgb,
                           width, height),
                  0.0)
            << channels << " channels of " << bits << " bits";
      }
    }
    const Bytes file = png(rgb, width, height, {.palette = true, .interlaced = interlaced});
    (void)decoder.open(file, "a.png");
    EXPECT_EQ(distance(decoder.decode({0, 0, width, height}, 8), from_palette, width, height), 0.0);
  }
}

// Skipping rows and columns must not change what is left.
TEST(ImageDecoder, PartOfAnImageEqualsThatPartOfTheWhole) {
  const int width = 301, height = 243;
  const Bytes rgb = picture(width, height, 5);
  ImageDecoder whole_decoder, part_decoder;
  for (const int eighths : {1, 2, 4, 8}) {
    for (const JpegOptions options :
         {JpegOptions{}, JpegOptions{.horizontal = 1, .vertical = 1}, JpegOptions{.vertical = 1},
          JpegOptions{.horizontal = 1}, JpegOptions{.progressive = true}, JpegOptions{.grey = true},
          JpegOptions{.cmyk = true}}) {
      const Bytes file = jpeg(rgb, width, height, options);
      (void)whole_decoder.open(file, "whole");
      const DecodedArea whole = whole_decoder.decode({0, 0, width, height}, eighths);
      PhiloxSequence random(3, RandomStream::synthetic, static_cast<std::uint64_t>(eighths));
      for (int i = 0; i < 25; ++i) {
        PixelArea area;
        area.width = 1 + static_cast<int>(random.below(width));
        area.height = 1 + static_cast<int>(random.below(height));
        area.x = static_cast<int>(random.below(static_cast<std::uint64_t>(width - area.width + 1)));
        area.y =
            static_cast<int>(random.below(static_cast<std::uint64_t>(height - area.height + 1)));
        (void)part_decoder.open(file, "part");
        const DecodedArea part = part_decoder.decode(area, eighths);
        int different = 0;
        for (int y = area.y * eighths / 8; y < (area.y + area.height) * eighths / 8; ++y) {
          for (int x = area.x * eighths / 8; x < (area.x + area.width) * eighths / 8; ++x) {
            const Rgb a = at(whole, x, y), b = at(part, x, y);
            different += a.r != b.r || a.g != b.g || a.b != b.b;
          }
        }
        ASSERT_EQ(different, 0) << eighths << "/8 of " << area.width << "x" << area.height << "+"
                                << area.x << "+" << area.y << (options.progressive ? " prog" : "")
                                << options.horizontal << options.vertical;
      }
    }
  }
}

TEST(ImageDecoder, ReadsTheOrientation) {
  ImageDecoder decoder;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Bytes file = jpeg(picture(20, 12), 20, 12, {.orientation = orientation});
    const ImageHeader header = decoder.open(file, "turned.jpg");
    EXPECT_EQ(header.orientation, orientation);
    EXPECT_EQ(header.width, 20);
  }
}

TEST(ImageDecoder, OrientationOfDamagedExifIsUpright) {
  Bytes tiff = {'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1, 0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, 6, 0, 0};
  EXPECT_EQ(exif_orientation(tiff), 6);
  for (std::size_t size = 0; size < 20; ++size) {
    EXPECT_EQ(exif_orientation(std::span(tiff).first(size)), 1) << size;
  }
  tiff[19] = 9;
  EXPECT_EQ(exif_orientation(tiff), 1);
  tiff[4] = tiff[5] = tiff[6] = tiff[7] = 0xFF;
  EXPECT_EQ(exif_orientation(tiff), 1);
}

TEST(ImageDecoder, RefusesWhatIsNoImage) {
  ImageDecoder decoder;
  const auto refuse = [&](const Bytes& bytes) {
    return refusal([&] { (void)check_image(decoder, bytes, "x.jpg"); });
  };
  expect_contains(refuse({}), {"x.jpg: is empty"});
  expect_contains(refuse({'G', 'I', 'F', '8', '9'}), {"neither a JPEG nor a PNG", "47 49 46 38"});
  const Bytes good = jpeg(picture(90, 70), 90, 70);
  expect_contains(refuse(Bytes(good.begin(), good.begin() + 700)), {"truncated"});
  const Bytes sound = png(picture(90, 70), 90, 70);
  expect_contains(refuse(Bytes(sound.begin(), sound.begin() + 200)), {"truncated"});
  Bytes wrong = sound;
  wrong[sound.size() / 2] ^= 0x55;
  expect_contains(refuse(wrong), {"not a valid PNG image"});
  EXPECT_EQ(check_image(decoder, good, "good"), 0);
}

// A few bytes that claim a huge image must not lead to a huge allocation.
TEST(ImageDecoder, RefusesClaimsThatTheFileCannotHold) {
  ImageDecoder decoder;
  Bytes file = jpeg(picture(64, 64), 64, 64);
  for (std::size_t i = 0; i + 9 < file.size(); ++i) {
    if (file[i] == 0xFF && file[i + 1] == 0xC0) {
      file[i + 5] = file[i + 7] = 0xFF;
      file[i + 6] = file[i + 8] = 0xDC;
    }
  }
  expect_contains(refusal([&] { (void)decoder.open(file, "bomb.jpg"); }),
                  {"bomb.jpg", "65500x65500"});
  for (std::size_t i = 0; i + 9 < file.size(); ++i) {
    if (file[i] == 0xFF && file[i + 1] == 0xC0) file[i + 5] = file[i + 7] = 0x20;
  }
  expect_contains(refusal([&] { (void)decoder.open(file, "bomb.jpg"); }), {"cannot hold"});
}

// Deterministic damage: only the project's own error may come out.
TEST(ImageDecoder, DamagedFilesGiveErrorsOrPixels) {
  const Bytes files[] = {
      jpeg(picture(70, 50), 70, 50), jpeg(picture(70, 50), 70, 50, {.progressive = true}),
      jpeg(picture(30, 20), 30, 20, {.cmyk = true, .orientation = 6}), png(picture(40, 30), 40, 30),
      png(picture(40, 30), 40, 30, {.palette = true, .interlaced = true})};
  ImageDecoder decoder;
  int errors = 0, images = 0;
  for (std::size_t f = 0; f < std::size(files); ++f) {
    PhiloxSequence random(11, RandomStream::synthetic, f);
    for (int round = 0; round < 300; ++round) {
      Bytes file = files[f];
      for (std::uint64_t n = 1 + random.below(4); n > 0; --n) {
        const std::size_t place = random.below(file.size());
        switch (random.below(4)) {
          case 0:
            file[place] = static_cast<std::uint8_t>(random.next());
            break;
          case 1:
            file.resize(place + 1);
            break;
          case 2:
            file.erase(file.begin() + static_cast<std::ptrdiff_t>(place));
            break;
          default:
            file.insert(file.begin() + static_cast<std::ptrdiff_t>(place),
                        static_cast<std::uint8_t>(random.next()));
            break;
        }
        if (file.empty()) file.push_back(0xFF);
      }
      try {
        (void)check_image(decoder, file, "damaged");
        ++images;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::bad_input);
        ++errors;
      }
    }
  }
  EXPECT_GT(errors, 100);
  EXPECT_GT(images, 100);
}

}  // namespace
}  // namespace ridgeline
