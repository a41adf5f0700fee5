#include "data/npy.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>
#include <string_view>

#include "base/error.h"
#include "data/file.h"

namespace ridgeline {
namespace {

constexpr std::size_t kLongestType = 20;  // in a message

// The text behind "'key': " in the header, which is a Python dict.
std::string_view after(std::string_view header, std::string_view key) {
  const std::size_t at = header.find(key);
  return at == std::string_view::npos ? std::string_view() : header.substr(at + key.size());
}

// "(1, 3, 224, 224)"; nothing is empty for a scalar.
std::vector<std::int64_t> dims_in(std::string_view text, const std::string& where) {
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < text.size() && text[i] != ')'; ++i) {
    if (text[i] < '0' || text[i] > '9') continue;
    std::int64_t dim = 0;
    const auto [end, error] = std::from_chars(text.data() + i, text.data() + text.size(), dim);
    if (error != std::errc()) bad_input("{}: broken .npy file: its shape is out of range", where);
    dims.push_back(dim);
    i = static_cast<std::size_t>(end - text.data()) - 1;
  }
  return dims;
}

template <typename Number>
std::vector<float> numbers_in(std::string_view bytes) {
  std::vector<float> values(bytes.size() / sizeof(Number));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Number number;
    std::memcpy(&number, bytes.data() + i * sizeof(Number), sizeof(Number));
    values[i] = static_cast<float>(number);
  }
  return values;
}

}  // namespace

NpyArray read_npy(const std::filesystem::path& path) {
  const std::string where = path.string();
  const std::vector<std::uint8_t> file = read_file(path);
  const std::string_view bytes(reinterpret_cast<const char*>(file.data()), file.size());
  if (bytes.size() < 12 || !bytes.starts_with("\x93NUMPY"))
    bad_input("{}: is not a .npy file", where);
  const std::size_t prefix = bytes[6] == 1 ? 10 : 12;  // later versions count in 32 bits
  std::uint32_t length = 0;
  std::memcpy(&length, bytes.data() + 8, prefix - 8);
  if (length > bytes.size() - prefix) bad_input("{}: truncated .npy file", where);
  const std::string_view header = bytes.substr(prefix, length);
  const std::string_view data = bytes.substr(prefix + length);
  const std::string_view type = after(header, "'descr': ");
  const bool wide = type.starts_with("'<f8'");
  if (!wide && !type.starts_with("'<f4'")) {
    bad_input("{}: contains {}; expected float32 or float64, little-endian", where,
              type.substr(0, std::min(type.find(','), kLongestType)));
  }
  if (!after(header, "'fortran_order': ").starts_with("False")) {
    bad_input("{}: is column-major; numpy.ascontiguousarray makes it row-major", where);
  }
  NpyArray array;
  array.dims = dims_in(after(header, "'shape': "), where);
  array.values = wide ? numbers_in<double>(data) : numbers_in<float>(data);
  std::int64_t elements = 1;
  for (const std::int64_t dim : array.dims) {
    if (__builtin_mul_overflow(elements, dim, &elements)) elements = -1;
  }
  if (elements != static_cast<std::int64_t>(array.values.size())) {
    bad_input("{}: broken .npy file: {} numbers, but its shape has {}", where, array.values.size(),
              elements);
  }
  return array;
}

}  // namespace ridgeline
