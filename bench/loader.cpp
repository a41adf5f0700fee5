// How fast images become batches: one core, stage by stage. bench/loader.py runs it beside
// torchvision; alone it prints milliseconds for each image.
//
//   loader STAGE FOLDER [SIDE]      STAGE: libjpeg, decode, crop, evaluate, job, read, or pack:FILE
//
// `libjpeg` is the library's plain loop (full decode to RGB at the scale that the crop allows),
// `decode` the project's decoder on the same images at the same scales, `crop` decoding and random
// resized crop, `evaluate` the transform of evaluation, `job` what is left of `crop` for the host
// where a GPU does the rest, `read` the files alone.

#include <cstdio>
// libjpeg's header needs FILE.
#include <jpeglib.h>

#include <algorithm>
#include <ctime>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "data/catalog.h"
#include "data/image_job.h"
#include "data/image_transform.h"
#include "data/sample_reader.h"

namespace ridgeline {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Of the processor, so that other programs on the machine disturb less.
double processor_seconds() {
  return static_cast<double>(std::clock()) / static_cast<double>(CLOCKS_PER_SEC);
}

// The library as its own example uses it.
void plain_decode(const Bytes& file, int eighths, Bytes& pixels) {
  jpeg_decompress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_decompress(&info);
  jpeg_mem_src(&info, file.data(), file.size());
  jpeg_read_header(&info, TRUE);
  info.scale_num = static_cast<unsigned>(eighths);
  info.scale_denom = 8;
  info.out_color_space = JCS_RGB;
  jpeg_start_decompress(&info);
  const std::size_t stride = std::size_t{3} * info.output_width;
  pixels.resize(stride * info.output_height);
  while (info.output_scanline < info.output_height) {
    JSAMPROW row = pixels.data() + info.output_scanline * stride;
    jpeg_read_scanlines(&info, &row, 1);
  }
  jpeg_finish_decompress(&info);
  jpeg_destroy_decompress(&info);
}

int eighths_for(const PixelArea& crop, int side) {
  for (const int eighths : {1, 2, 4}) {
    if (crop.width * eighths >= 8 * side && crop.height * eighths >= 8 * side) return eighths;
  }
  return 8;
}

int run(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr,
                 "usage: loader libjpeg|decode|crop|evaluate|job|read|pack:FILE FOLDER [SIDE]\n");
    return 2;
  }
  const std::string stage = argv[1];
  const int side = argc > 3 ? std::stoi(argv[3]) : 224;
  const bool packed = stage.starts_with("pack:");
  const Dataset data =
      load_dataset(packed ? stage.substr(5) : argv[2], {.image = {side, side}}).train;
  const auto count = static_cast<std::int32_t>(data.count());

  std::vector<Bytes> files;
  ImageDecoder decoder;
  std::vector<PixelArea> crops;
  if (!packed) {
    Bytes scratch;
    for (const std::int32_t number : data.image_numbers) {
      const StoredImage image = data.images->fetch(number, scratch);
      files.emplace_back(image.bytes.begin(), image.bytes.end());
      const ImageHeader header = decoder.open(image.bytes, "image");
      crops.push_back(random_crop({header.height, header.width}, 0, 0, number));
    }
  }
  SampleReader cropped(data, {.crop = true}), plain(data, {});
  ImageJobMaker maker;
  Bytes pixels(data.sample_bytes()), buffer;
  const auto one = [&](std::int32_t i) {
    const auto at = static_cast<std::size_t>(i);
    if (stage == "libjpeg") {
      plain_decode(files[at], eighths_for(crops[at], side), buffer);
    } else if (stage == "decode") {
      const ImageHeader header = decoder.open(files[at], "image");
      (void)decoder.decode({0, 0, header.width, header.height}, eighths_for(crops[at], side));
    } else if (stage == "crop") {
      (void)cropped.read({.sample = i}, pixels);
    } else if (stage == "evaluate" || packed) {
      (void)plain.read({.sample = i}, pixels);
    } else if (stage == "job") {
      const StoredImage image = data.images->fetch(data.image_numbers[at], buffer);
      const TransformRequest request{.target = {side, side}, .crop = true, .sample = i};
      if (maker.make(image, request, ImageForm::blocks)) {
        buffer.resize(maker.part_bytes());
        (void)maker.put(buffer.data(), 0);
      } else {
        (void)cropped.read({.sample = i}, pixels);
      }
    } else if (stage == "read") {
      (void)data.images->fetch(data.image_numbers[at], buffer);
    } else {
      bad_input("unknown stage '{}'", stage);
    }
  };
  for (std::int32_t i = 0; i < count; ++i) one(i);  // warms caches, tests a pack's checksums
  const double start = processor_seconds();
  for (std::int32_t i = 0; i < count; ++i) one(i);
  const double seconds = processor_seconds() - start;
  std::printf("%.4f\n", 1000.0 * seconds / count);
  return 0;
}

}  // namespace
}  // namespace ridgeline

int main(int argc, char** argv) {
  try {
    return ridgeline::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "loader: %s\n", error.what());
    return 2;
  }
}
