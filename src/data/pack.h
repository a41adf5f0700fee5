#pragma once

// Packs: one file with all images of a dataset, its labels and its class names, mapped into memory.
//
//   header   128 bytes: magic, version, kind, sizes, counts, place and checksum of the index, and
//            a checksum of its own
//   records  pixels (channels x height x width) or JPEG and PNG streams, one after the other
//   index    for each image, training part first: offset, bytes, CRC-32, label; then the name of
//            the dataset and of its classes
//
// All numbers are little-endian. A record's checksum is tested when it is read for the first time.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/image_transform.h"

namespace ridgeline {

enum class PackKind : std::uint32_t {
  decoded = 0,  // pixels as evaluation sees them, all of one size
  encoded = 1,  // image files as they were
};

struct PackRecord {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0, checksum = 0;
  std::int32_t label = 0;
};

struct PackIndex {
  PackKind kind = PackKind::decoded;
  int channels = 3, height = 0, width = 0;  // of the records; encoded: the usual size of the input
  bool photos = false;
  std::int64_t train_count = 0, test_count = 0;
  std::int32_t classes = 0;
  std::string name;
  std::vector<std::string> class_names;  // empty, or one for each class
  std::vector<PackRecord> records;
};

[[nodiscard]] bool is_pack(const std::filesystem::path& path);

// Checks everything but the records' contents; a wrong version, checksum or count is bad_input.
// Needs memory in proportion to the file, whatever its counts say.
[[nodiscard]] PackIndex parse_pack(std::span<const std::uint8_t> file, const std::string& name);

// Opens a pack. A size of 0x0 takes the pack's own. Source is left to the caller.
[[nodiscard]] Split open_pack(const std::filesystem::path& path, FrameSize size);

struct PackOptions {
  PackKind kind = PackKind::decoded;
  bool skip_broken = false;  // leave broken images out; else they are refused. Decoded packs only:
                             // encoded ones take files as they are.
};

struct PackSummary {
  std::int64_t train_count = 0, test_count = 0;
  std::int64_t bytes = 0;
  std::vector<std::string> skipped;  // why each broken image was left out
};

// Writes beside `path` and renames: there is a whole pack or none. Decoded packs hold images of the
// datasets' size. `progress` is told how many images of how many are done.
PackSummary write_pack(const Split& data, const std::filesystem::path& path,
                       const PackOptions& options,
                       const std::function<void(std::int64_t, std::int64_t)>& progress);

}  // namespace ridgeline
