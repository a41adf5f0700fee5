#pragma once

// Images for the tests of src/data: made, encoded, and written into folders.

#include <cstdint>
#include <filesystem>
#include <string>

#include "support/data_files.h"

namespace ridgeline::testing {

// A picture of smooth colours with an edge, different for each seed: three bytes a pixel.
[[nodiscard]] Bytes picture(int width, int height, int seed = 0);

struct JpegOptions {
  int quality = 90;
  int horizontal = 2, vertical = 2;  // sampling of the colours
  bool progressive = false, grey = false, cmyk = false;
  int orientation = 0;  // 0: no EXIF
};
[[nodiscard]] Bytes jpeg(const Bytes& rgb, int width, int height, const JpegOptions& options = {});

struct PngOptions {
  int channels = 3;  // 1 grey, 2 grey and alpha, 3 colours, 4 colours and alpha
  int bits = 8;
  bool palette = false, interlaced = false;
};
// Channels beyond the colours are filled with a pattern; grey takes red.
[[nodiscard]] Bytes png(const Bytes& rgb, int width, int height, const PngOptions& options = {});

void write_file(const std::filesystem::path& path, const Bytes& bytes);

// `count` JPEG files of different sizes in root/CLASS for each class.
void write_class_folders(const std::filesystem::path& root, const std::vector<std::string>& classes,
                         int count, int seed = 0);

// The folder with the project's test data, or empty where there is none.
[[nodiscard]] std::filesystem::path test_data();

}  // namespace ridgeline::testing
