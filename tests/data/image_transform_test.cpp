// Crops and resizing: the geometry of torchvision, and its pixels where Python has it.

#include "data/image_transform.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>

#include "support/images.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;
using namespace ridgeline::testing;

Bytes transformed(const Bytes& file, const TransformRequest& request) {
  ImageDecoder decoder;
  Resizer resizer;
  Bytes scratch, pixels(static_cast<std::size_t>(request.channels * request.target.height *
                                                 request.target.width));
  transform_image(decoder, resizer, {.bytes = file}, "test", request, scratch, pixels);
  return pixels;
}

TEST(ImageTransform, EvaluationIsResizeAndCentreCrop) {
  const Resize wide = evaluation_transform({375, 500}, {224, 224});
  EXPECT_EQ(wide.resized_height, 256);
  EXPECT_EQ(wide.resized_width, 341);
  EXPECT_EQ(wide.x, 58);  // (341 - 224) / 2 = 58.5, to the even one
  EXPECT_EQ(wide.y, 16);
  const Resize tall = evaluation_transform({1000, 333}, {224, 224});
  EXPECT_EQ(tall.resized_width, 256);
  EXPECT_EQ(tall.resized_height, 768);
  EXPECT_EQ(tall.y, 272);
  const Resize small = evaluation_transform({40, 40}, {64, 64});
  EXPECT_EQ(small.resized_width, 73);
  EXPECT_EQ(small.x, 4);
}

TEST(ImageTransform, ImageOfTheTargetsSizePassesUnchanged) {
  const int side = 64;
  const Bytes rgb = picture(side, side);
  const Bytes pixels = transformed(png(rgb, side, side), {.target = {side, side}});
  for (std::size_t i = 0; i < static_cast<std::size_t>(side * side); ++i) {
    for (std::size_t c = 0; c < 3; ++c) {
      ASSERT_EQ(pixels[c * static_cast<std::size_t>(side * side) + i], rgb[3 * i + c]);
    }
  }
}

TEST(ImageTransform, CropsAreSeededAndWithinTheirBounds) {
  std::set<std::pair<int, int>> places;
  double area = 0.0;
  const int count = 4000;
  for (std::int32_t sample = 0; sample < count; ++sample) {
    const PixelArea crop = random_crop({300, 400}, 7, 3, sample);
    ASSERT_GE(crop.x, 0);
    ASSERT_GE(crop.y, 0);
    ASSERT_LE(crop.x + crop.width, 400);
    ASSERT_LE(crop.y + crop.height, 300);
    const double share = crop.width * crop.height / 120000.0;
    const double ratio = static_cast<double>(crop.width) / crop.height;
    ASSERT_GE(share, 0.078);
    ASSERT_GE(ratio, 0.74);
    ASSERT_LE(ratio, 1.35);
    area += share;
    places.emplace(crop.x, crop.y);
    const PixelArea again = random_crop({300, 400}, 7, 3, sample);
    ASSERT_EQ(crop.x, again.x);
    ASSERT_EQ(crop.width, again.width);
  }
  // torchvision's mean: a uniform share of 0.08 to 1, less for large crops that did not fit.
  EXPECT_NEAR(area / count, 0.431, 0.012);
  EXPECT_GT(places.size(), 3000U);
  const PixelArea a = random_crop({300, 400}, 7, 3, 1), b = random_crop({300, 400}, 7, 4, 1);
  EXPECT_TRUE(a.x != b.x || a.y != b.y || a.width != b.width);
}

TEST(ImageTransform, ImagesOfExtremeRatioGetACentralCrop) {
  const PixelArea crop = random_crop({10, 1000}, 0, 0, 0);
  EXPECT_EQ(crop.height, 10);
  EXPECT_EQ(crop.width, 13);
  EXPECT_EQ(crop.x, 493);
  const PixelArea dot = random_crop({1, 1}, 0, 0, 0);
  EXPECT_EQ(dot.width, 1);
  EXPECT_EQ(dot.height, 1);
}

// A stored image that is turned is seen as the upright one.
TEST(ImageTransform, OrientationIsRespected) {
  const int width = 97, height = 71;
  const Bytes rgb = picture(width, height, 3);
  const auto stored = [&](int orientation) {
    // Where the pixel at (x, y) of the stored image is shown.
    const bool swap = orientation >= 5;
    const int w = swap ? height : width, h = swap ? width : height;
    Bytes turned(rgb.size());
    for (int y = 0; y < h; ++y) {
      for (int x = 0; x < w; ++x) {
        int sx = swap ? y : x, sy = swap ? x : y;
        if (orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7) {
          sx = width - 1 - sx;
        }
        if (orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8) {
          sy = height - 1 - sy;
        }
        for (std::size_t c = 0; c < 3; ++c) {
          turned[3 * static_cast<std::size_t>(y * w + x) + c] =
              rgb[3 * static_cast<std::size_t>(sy * width + sx) + c];
        }
      }
    }
    return jpeg(turned, w, h,
                {.quality = 100, .horizontal = 1, .vertical = 1, .orientation = orientation});
  };
  for (const bool crop : {false, true}) {
    const TransformRequest request{.target = {40, 48}, .crop = crop, .seed = 5};
    const Bytes upright = transformed(stored(1), request);
    for (int orientation = 2; orientation <= 8; ++orientation) {
      const Bytes turned = transformed(stored(orientation), request);
      int most = 0;
      for (std::size_t i = 0; i < upright.size(); ++i) {
        most = std::max(most, std::abs(upright[i] - turned[i]));
      }
      EXPECT_LE(most, 4) << "orientation " << orientation;  // the encoder's rounding
    }
  }
}

TEST(ImageTransform, OneChannelIsKept) {
  const Bytes grey = ramp(28 * 28);
  Resizer resizer;
  ImageDecoder decoder;
  Bytes scratch, pixels(32 * 32);
  transform_image(decoder, resizer,
                  {.bytes = grey, .decoded = true, .channels = 1, .height = 28, .width = 28},
                  "grey", {.target = {32, 32}, .channels = 1}, scratch, pixels);
  EXPECT_GT(std::set<std::uint8_t>(pixels.begin(), pixels.end()).size(), 20U);
}

// Files through torchvision's own transforms on PIL images. One start of Python serves all.
class SlowImageParity : public FileTest {
 protected:
  // Runs lines of Python after the usual imports; false where torchvision is not installed.
  bool python(const std::string& lines) const {
    std::ofstream(folder_ / "reference.py")
        << "import sys\ntry:\n    import numpy as np\n    from PIL import Image, ImageOps\n"
           "    from torchvision import transforms as T\n"
           "    import torchvision.transforms.functional as F\nexcept ImportError:\n"
           "    sys.exit(77)\n"
           "def show(path):\n    return ImageOps.exif_transpose(Image.open(path)).convert('RGB')\n"
           "def save(image, path):\n"
           "    np.ascontiguousarray(np.asarray(image).transpose(2, 0, 1)).tofile(path)\n"
        << lines;
    const char* given = std::getenv("RIDGELINE_PYTHON");
    const std::string command = std::string(given != nullptr ? given : "/usr/bin/python3") + " " +
                                (folder_ / "reference.py").string() + " >" +
                                (folder_ / "python.log").string() + " 2>&1";
    const int status = std::system(command.c_str());
    if (status == 0) return true;
    const Bytes log = file_bytes(folder_ / "python.log");
    EXPECT_TRUE(WEXITSTATUS(status) == 77 || WEXITSTATUS(status) == 127)
        << std::string(log.begin(), log.end());
    return false;
  }

  struct Difference {
    int most = 0;
    double mean = 0.0;
  };
  static Difference difference(const Bytes& a, const Bytes& b) {
    Difference result{a.size() == b.size() ? 0 : 999, 0.0};
    for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
      const int d = std::abs(a[i] - b[i]);
      result.most = std::max(result.most, d);
      result.mean += d;
    }
    result.mean /= static_cast<double>(a.size());
    return result;
  }

  struct Named {
    std::string name;
    Bytes bytes;
  };
  std::vector<Named> files() const {
    std::vector<Named> all;
    const auto add = [&](std::string name, Bytes bytes) {
      (void)write(name, bytes);
      all.push_back({std::move(name), std::move(bytes)});
    };
    add("wide.jpg", jpeg(picture(500, 375, 1), 500, 375));
    add("tall.jpg", jpeg(picture(233, 811, 2), 233, 811, {.horizontal = 1, .vertical = 1}));
    add("progressive.jpg", jpeg(picture(640, 480, 3), 640, 480, {.progressive = true}));
    add("grey.jpg", jpeg(picture(300, 300, 4), 300, 300, {.grey = true}));
    add("inks.jpg", jpeg(picture(280, 310, 5), 280, 310, {.cmyk = true}));
    add("small.jpg", jpeg(picture(64, 48, 6), 64, 48));
    add("exact.jpg", jpeg(picture(224, 224, 7), 224, 224));
    add("large.jpg", jpeg(picture(1601, 1203, 8), 1601, 1203));
    add("colour.png", png(picture(333, 257, 9), 333, 257));
    add("alpha.png", png(picture(257, 333, 10), 257, 333, {.channels = 4}));
    add("palette.png", png(picture(300, 200, 11), 300, 200, {.palette = true}));
    add("deep.png", png(picture(300, 200, 12), 300, 200, {.bits = 16}));
    return all;
  }
};

TEST_F(SlowImageParity, EvaluationEqualsTorchvisionBitForBit) {
  const std::vector<Named> all = files();
  std::string lines =
      "def evaluate(name):\n    image = show(name)\n    if image.size != (224, 224):\n"
      "        image = T.CenterCrop(224)(T.Resize(256)(image))\n    save(image, name + '.raw')\n";
  for (const Named& file : all) {
    lines += "evaluate('" + (folder_ / file.name).string() + "')\n";
  }
  if (!python(lines)) GTEST_SKIP() << "/usr/bin/python3 has no torchvision";
  for (const Named& file : all) {
    const Difference found = difference(transformed(file.bytes, {.target = {224, 224}}),
                                        file_bytes(folder_ / (file.name + ".raw")));
    EXPECT_EQ(found.most, 0) << file.name << ", mean " << found.mean;
  }
}

TEST_F(SlowImageParity, TurnedImagesEqualPillowsTransposedOnes) {
  std::string lines =
      "def evaluate(name):\n"
      "    save(T.CenterCrop(112)(T.Resize(128)(show(name))), name + '.raw')\n";
  std::vector<Named> all;
  for (int orientation = 1; orientation <= 8; ++orientation) {
    const Bytes bytes =
        jpeg(picture(301, 203, orientation), 301, 203, {.orientation = orientation});
    const std::string name = "turned" + std::to_string(orientation) + ".jpg";
    lines += "evaluate('" + write(name, bytes).string() + "')\n";
    all.push_back({name, bytes});
  }
  if (!python(lines)) GTEST_SKIP() << "/usr/bin/python3 has no torchvision";
  for (const Named& file : all) {
    const Difference found = difference(transformed(file.bytes, {.target = {112, 112}}),
                                        file_bytes(folder_ / (file.name + ".raw")));
    // Rows are resized before columns; a turned image has them the other way round.
    EXPECT_LE(found.most, 1) << file.name;
  }
}

// The same crops: equal where JPEG is decoded at full size, near where it is decoded smaller.
TEST_F(SlowImageParity, CropsEqualTorchvisionsResizedCrop) {
  const std::vector<Named> all = files();
  const FrameSize target{96, 96};
  std::string lines;
  struct Case {
    const Named* file;
    std::int32_t sample;
    bool scaled;
    std::string raw;
  };
  std::vector<Case> cases;
  for (const Named& file : all) {
    ImageDecoder decoder;
    const ImageHeader header = decoder.open(file.bytes, file.name);
    for (std::int32_t sample = 0; sample < 8; ++sample) {
      const PixelArea crop = random_crop({header.height, header.width}, 1, 2, sample);
      const std::string raw = (folder_ / (file.name + std::to_string(sample))).string();
      lines += "save(F.resized_crop(show('" + (folder_ / file.name).string() + "'), " +
               std::to_string(crop.y) + ", " + std::to_string(crop.x) + ", " +
               std::to_string(crop.height) + ", " + std::to_string(crop.width) + ", (96, 96)), '" +
               raw + "')\n";
      const bool scaled = header.format == ImageFormat::jpeg && crop.width >= 2 * target.width &&
                          crop.height >= 2 * target.height;
      cases.push_back({&file, sample, scaled, raw});
    }
  }
  if (!python(lines)) GTEST_SKIP() << "/usr/bin/python3 has no torchvision";
  int exact = 0, near = 0;
  for (const Case& test : cases) {
    const Difference found = difference(
        transformed(test.file->bytes,
                    {.target = target, .crop = true, .seed = 1, .epoch = 2, .sample = test.sample}),
        file_bytes(test.raw));
    if (test.scaled) {
      EXPECT_LT(found.mean, 3.0) << test.file->name << " sample " << test.sample;
      ++near;
    } else {
      EXPECT_EQ(found.most, 0) << test.file->name << " sample " << test.sample;
      ++exact;
    }
  }
  EXPECT_GT(exact, 10);
  EXPECT_GT(near, 10);
}

}  // namespace
}  // namespace ridgeline
