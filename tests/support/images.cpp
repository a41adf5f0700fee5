#include "support/images.h"

#include <cstdio>
// libjpeg's header needs FILE.
#include <jpeglib.h>
#include <png.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

namespace ridgeline::testing {
namespace {

namespace fs = std::filesystem;

Bytes exif(int orientation) {
  Bytes bytes = {'E', 'x', 'i', 'f', 0, 0, 'M', 'M', 0, 42, 0, 0, 0, 8, 0, 1};
  const Bytes entry = {0x01, 0x12, 0, 3, 0, 0, 0, 1, 0, static_cast<std::uint8_t>(orientation),
                       0,    0,    0, 0, 0, 0};
  bytes.insert(bytes.end(), entry.begin(), entry.end());
  return bytes;
}

}  // namespace

Bytes picture(int width, int height, int seed) {
  Bytes rgb;
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const double u = (x + 7.0 * seed) / 23.0, v = (y + 3.0 * seed) / 17.0;
      const bool edge = (x + y + seed) % 61 < 20;
      rgb.push_back(static_cast<std::uint8_t>(127.5 + 100 * std::sin(u) + (edge ? 20 : 0)));
      rgb.push_back(static_cast<std::uint8_t>(127.5 + 100 * std::cos(v) - (edge ? 20 : 0)));
      rgb.push_back(static_cast<std::uint8_t>(127.5 + 100 * std::sin(u + v)));
    }
  }
  return rgb;
}

Bytes jpeg(const Bytes& rgb, int width, int height, const JpegOptions& options) {
  jpeg_compress_struct info{};
  jpeg_error_mgr errors{};
  info.err = jpeg_std_error(&errors);
  jpeg_create_compress(&info);
  unsigned char* memory = nullptr;
  unsigned long size = 0;
  jpeg_mem_dest(&info, &memory, &size);
  info.image_width = static_cast<JDIMENSION>(width);
  info.image_height = static_cast<JDIMENSION>(height);
  info.input_components = options.grey ? 1 : options.cmyk ? 4 : 3;
  info.in_color_space = options.grey ? JCS_GRAYSCALE : options.cmyk ? JCS_CMYK : JCS_RGB;
  jpeg_set_defaults(&info);
  jpeg_set_quality(&info, options.quality, TRUE);
  info.comp_info[0].h_samp_factor = options.grey || options.cmyk ? 1 : options.horizontal;
  info.comp_info[0].v_samp_factor = options.grey || options.cmyk ? 1 : options.vertical;
  if (options.progressive) jpeg_simple_progression(&info);
  jpeg_start_compress(&info, TRUE);
  if (options.orientation > 0) {
    const Bytes block = exif(options.orientation);
    jpeg_write_marker(&info, JPEG_APP0 + 1, block.data(), static_cast<unsigned>(block.size()));
  }
  Bytes row;
  for (int y = 0; y < height; ++y) {
    row.clear();
    for (int x = 0; x < width; ++x) {
      const std::uint8_t* pixel =
          rgb.data() + 3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                            static_cast<std::size_t>(x));
      for (int c = 0; c < (options.grey ? 1 : 3); ++c) row.push_back(pixel[c]);
      if (options.cmyk) row.push_back(200);
    }
    JSAMPROW rows[] = {row.data()};
    jpeg_write_scanlines(&info, rows, 1);
  }
  jpeg_finish_compress(&info);
  jpeg_destroy_compress(&info);
  Bytes bytes(memory, memory + size);
  std::free(memory);
  return bytes;
}

Bytes png(const Bytes& rgb, int width, int height, const PngOptions& options) {
  Bytes bytes;
  png_structp writer = png_create_write_struct(PNG_LIBPNG_VER_STRING, nullptr, nullptr, nullptr);
  png_infop info = png_create_info_struct(writer);
  const auto put = [](png_structp png, png_bytep from, std::size_t count) {
    auto& to = *static_cast<Bytes*>(png_get_io_ptr(png));
    to.insert(to.end(), from, from + count);
  };
  png_set_write_fn(writer, &bytes, put, [](png_structp) {});
  static constexpr int kTypes[] = {PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                   PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
  const int type = options.palette ? PNG_COLOR_TYPE_PALETTE : kTypes[options.channels - 1];
  png_set_IHDR(writer, info, static_cast<png_uint_32>(width), static_cast<png_uint_32>(height),
               options.bits, type, options.interlaced ? PNG_INTERLACE_ADAM7 : PNG_INTERLACE_NONE,
               PNG_COMPRESSION_TYPE_DEFAULT, PNG_FILTER_TYPE_DEFAULT);
  if (options.palette) {
    // Entry i is (i, 255 - i, i / 2); pixels take red as their entry.
    png_color colours[256];
    for (int i = 0; i < 256; ++i) {
      colours[i] = {static_cast<png_byte>(i), static_cast<png_byte>(255 - i),
                    static_cast<png_byte>(i / 2)};
    }
    png_set_PLTE(writer, info, colours, 256);
  }
  png_write_info(writer, info);
  const int values = options.palette ? 1 : options.channels;
  std::vector<Bytes> lines;
  for (int y = 0; y < height; ++y) {
    Bytes line;
    for (int x = 0; x < width; ++x) {
      const std::uint8_t* pixel =
          rgb.data() + 3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                            static_cast<std::size_t>(x));
      for (int c = 0; c < values; ++c) {
        const bool alpha =
            !options.palette && (options.channels == 2 || options.channels == 4) && c == values - 1;
        line.push_back(alpha ? static_cast<std::uint8_t>(x * 5) : pixel[c]);
        if (options.bits == 16) line.push_back(static_cast<std::uint8_t>(x + y));
      }
    }
    lines.push_back(std::move(line));
  }
  std::vector<png_bytep> rows;
  for (Bytes& line : lines) rows.push_back(line.data());
  png_write_image(writer, rows.data());
  png_write_end(writer, info);
  png_destroy_write_struct(&writer, &info);
  return bytes;
}

void write_file(const fs::path& path, const Bytes& bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

void write_class_folders(const fs::path& root, const std::vector<std::string>& classes, int count,
                         int seed) {
  for (const std::string& name : classes) {
    for (int i = 0; i < count; ++i) {
      ++seed;
      const int width = 40 + 13 * seed % 31, height = 36 + 17 * seed % 41;
      write_file(root / name / (std::to_string(i) + ".jpg"),
                 jpeg(picture(width, height, seed), width, height));
    }
  }
}

fs::path test_data() {
  const char* folder = std::getenv("RIDGELINE_TEST_DATA");
  fs::path path = folder != nullptr ? folder : "../shared/data";
  return fs::exists(path) ? path : fs::path();
}

}  // namespace ridgeline::testing
