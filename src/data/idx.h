#pragma once

// IDX, the format of MNIST and its relatives: a magic number (two zero bytes, the element type, the
// number of dimensions), the dimensions, the elements; all numbers big-endian. Plain or gzip.

#include <cstdint>
#include <filesystem>
#include <vector>

#include "data/dataset.h"

namespace ridgeline {

struct IdxFile {
  std::vector<std::int64_t> dims;
  std::vector<std::uint8_t> data;
};

// Reads a file of unsigned bytes with the given number of dimensions; anything else in it is a
// bad_input Error that tells what was found and what would be right.
[[nodiscard]] IdxFile read_idx(const std::filesystem::path& path, int dimensions);

// Images (count x height x width) with their labels. Name and source are left to the caller.
[[nodiscard]] Dataset read_idx_pair(const std::filesystem::path& images,
                                    const std::filesystem::path& labels, std::int32_t classes);

// The folder's train-images, train-labels, t10k-images and t10k-labels files, under their usual
// names ("train-images-idx3-ubyte" or "train-images.idx3-ubyte", with or without ".gz"). The test
// part may be absent as a whole.
[[nodiscard]] Split read_idx_folder(const std::filesystem::path& folder, std::int32_t classes);

}  // namespace ridgeline
