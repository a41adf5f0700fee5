#pragma once

// Weight files made by hand, byte by byte: right ones, and what an attacker would send.

#include <string>
#include <utility>
#include <vector>

#include "support/data_files.h"

namespace ridgeline::testing {

[[nodiscard]] Bytes bytes_of(std::string_view text);
[[nodiscard]] Bytes little_endian(std::uint64_t number, int count);

// Header length, header, data.
[[nodiscard]] Bytes safetensors_bytes(const std::string& header, const Bytes& data);

struct ZipPart {
  std::string name;
  Bytes contents;
  bool deflated = false;
};
[[nodiscard]] Bytes zip_bytes(const std::vector<ZipPart>& parts);

// Pieces of pickles.
[[nodiscard]] std::string pickled_text(std::string_view text);
[[nodiscard]] std::string pickled_number(std::int64_t number);
[[nodiscard]] std::string pickled_tuple(const std::vector<std::int64_t>& numbers);
// A tensor of a storage, as torch.save writes it.
struct PickledTensor {
  std::string name;
  std::string key = "0";
  std::int64_t storage_elements = 0, offset = 0;
  std::vector<std::int64_t> dims, strides;
  std::string storage_type = "FloatStorage";
};
[[nodiscard]] std::string pickled_tensor(const PickledTensor& tensor);
// {name: tensor, ...} as a whole pickle.
[[nodiscard]] std::string pickled_dict(const std::vector<PickledTensor>& tensors);

// A zip file with one pickle and the storages.
[[nodiscard]] Bytes torch_zip(const std::string& pickle,
                              const std::vector<std::pair<std::string, Bytes>>& storages,
                              bool deflated = false);
// The older format; each storage is a key and floats.
[[nodiscard]] Bytes torch_legacy(const std::string& pickle,
                                 const std::vector<std::pair<std::string, Bytes>>& storages);

[[nodiscard]] Bytes float_bytes(const std::vector<float>& values);

}  // namespace ridgeline::testing
