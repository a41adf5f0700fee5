#include "data/idx.h"

#include <algorithm>
#include <exception>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"
#include "data/file.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

constexpr std::uint8_t kUnsignedByte = 0x08;

std::uint32_t big_endian(const std::vector<std::uint8_t>& bytes, std::size_t at) {
  return std::uint32_t{bytes[at]} << 24 | std::uint32_t{bytes[at + 1]} << 16 |
         std::uint32_t{bytes[at + 2]} << 8 | std::uint32_t{bytes[at + 3]};
}

std::string_view kind_of(int dimensions) { return dimensions == 1 ? "labels" : "images"; }

void check_magic(const fs::path& path, const std::vector<std::uint8_t>& bytes, int dimensions) {
  if (bytes.size() < 4) {
    bad_input("{}: has {} bytes, too few for an IDX header", path.string(), bytes.size());
  }
  const std::uint32_t wanted =
      std::uint32_t{kUnsignedByte} << 8 | static_cast<std::uint32_t>(dimensions);
  const std::uint32_t found = big_endian(bytes, 0);
  if (found == wanted) return;
  const bool other_kind = found >> 8 == kUnsignedByte && (found & 0xFF) >= 1 && (found & 0xFF) <= 4;
  bad_input("{}: magic number 0x{:08x}, expected 0x{:08x} (IDX {}: unsigned bytes, {} {}){}",
            path.string(), found, wanted, kind_of(dimensions), dimensions,
            dimensions == 1 ? "dimension" : "dimensions",
            other_kind ? fmt::format("; this is an IDX file with {} dimension(s)", found & 0xFF)
                       : std::string());
}

std::string dims_text(const std::vector<std::int64_t>& dims) {
  std::string text;
  for (const std::int64_t dim : dims) text += fmt::format("{}{}", text.empty() ? "" : "x", dim);
  return text;
}

void check_labels(const fs::path& path, const std::vector<std::uint8_t>& labels,
                  std::int32_t classes) {
  const auto outside = std::find_if(labels.begin(), labels.end(),
                                    [&](std::uint8_t label) { return label >= classes; });
  if (outside == labels.end()) return;
  bad_input(
      "{}: label {} of sample {} is outside the {} classes (0 to {}); the largest label in "
      "the file is {}",
      path.string(), *outside, outside - labels.begin(), classes, classes - 1,
      *std::max_element(labels.begin(), labels.end()));
}

// "train-images" with three dimensions -> train-images-idx3-ubyte, .idx3-ubyte, each also as .gz.
std::optional<fs::path> find_file(const fs::path& folder, const std::string& stem, int dimensions) {
  for (const char separator : {'-', '.'}) {
    for (const char* ending : {"", ".gz"}) {
      fs::path path =
          folder / fmt::format("{}{}idx{}-ubyte{}", stem, separator, dimensions, ending);
      std::error_code ignored;
      if (fs::exists(path, ignored)) return path;
    }
  }
  return std::nullopt;
}

struct Pair {
  std::optional<fs::path> images, labels;
};

Pair find_pair(const fs::path& folder, const std::string& part) {
  return {find_file(folder, part + "-images", 3), find_file(folder, part + "-labels", 1)};
}

void require_whole(const fs::path& folder, const Pair& pair, const std::string& part) {
  const auto require = [&](const std::optional<fs::path>& path, const char* kind, int dimensions) {
    if (path) return;
    bad_input("{}: has no {} for the {} part: expected {}-{}-idx{}-ubyte, with or without .gz",
              folder.string(), kind, part == "train" ? "training" : "test", part, kind, dimensions);
  };
  require(pair.images, "images", 3);
  require(pair.labels, "labels", 1);
}

}  // namespace

IdxFile read_idx(const fs::path& path, int dimensions) {
  std::vector<std::uint8_t> bytes = read_file(path);
  check_magic(path, bytes, dimensions);
  const std::size_t header = 4 + 4 * static_cast<std::size_t>(dimensions);
  if (bytes.size() < header) {
    bad_input("{}: the header ends after {} of {} bytes", path.string(), bytes.size(), header);
  }
  IdxFile file;
  std::int64_t elements = 1;
  bool overflow = false;
  for (std::size_t at = 4; at < header; at += 4) {
    file.dims.push_back(big_endian(bytes, at));
    overflow = __builtin_mul_overflow(elements, file.dims.back(), &elements) || overflow;
  }
  if (elements == 0 && !overflow) {
    bad_input("{}: the header says {} {}: there is nothing in it", path.string(),
              dims_text(file.dims), kind_of(dimensions));
  }
  const auto held = static_cast<std::int64_t>(bytes.size() - header);
  if (overflow || held < elements) {
    bad_input("{}: truncated: {} bytes follow the header, {} {} need {}", path.string(), held,
              dims_text(file.dims), kind_of(dimensions),
              overflow ? std::string("more than any file holds") : std::to_string(elements));
  }
  if (held > elements) {
    bad_input("{}: {} bytes too many: {} bytes follow the header, {} {} need {}", path.string(),
              held - elements, held, dims_text(file.dims), kind_of(dimensions), elements);
  }
  bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(header));
  file.data = std::move(bytes);
  return file;
}

Dataset read_idx_pair(const fs::path& images, const fs::path& labels, std::int32_t classes) {
  IdxFile image_file = read_idx(images, 3);
  const IdxFile label_file = read_idx(labels, 1);
  if (image_file.dims[0] != label_file.dims[0]) {
    bad_input("{} has {} images but {} has {} labels; the counts must be equal", images.string(),
              image_file.dims[0], labels.string(), label_file.dims[0]);
  }
  check_labels(labels, label_file.data, classes);
  Dataset data;
  data.height = image_file.dims[1];
  data.width = image_file.dims[2];
  data.classes = classes;
  data.pixels = std::move(image_file.data);
  data.labels.assign(label_file.data.begin(), label_file.data.end());
  return data;
}

Split read_idx_folder(const fs::path& folder, std::int32_t classes) {
  const Pair train = find_pair(folder, "train"), test = find_pair(folder, "t10k");
  require_whole(folder, train, "train");
  const bool tested = test.images || test.labels;
  if (tested) require_whole(folder, test, "t10k");

  // The test part is decompressed beside the training part.
  Split split;
  std::exception_ptr error;
  {
    std::jthread beside;
    if (tested) {
      beside = std::jthread([&] {
        try {
          split.test = read_idx_pair(*test.images, *test.labels, classes);
        } catch (...) {
          error = std::current_exception();
        }
      });
    }
    split.train = read_idx_pair(*train.images, *train.labels, classes);
  }
  if (error) std::rethrow_exception(error);
  if (tested &&
      (split.test.height != split.train.height || split.test.width != split.train.width)) {
    bad_input("{}: training images are {}x{} but test images are {}x{}", folder.string(),
              split.train.height, split.train.width, split.test.height, split.test.width);
  }
  return split;
}

}  // namespace ridgeline
