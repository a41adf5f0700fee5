#include "train/weight_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/error.h"
#include "train/safetensors.h"
#include "train/torch_checkpoint.h"

namespace ridgeline {
namespace {

static_assert(std::endian::native == std::endian::little, "weight files are little-endian");

struct TypeInfo {
  std::string_view name;
  std::size_t size;
};
constexpr std::array<TypeInfo, 13> kTypes = {{{"f64", 8},
                                              {"f32", 4},
                                              {"f16", 2},
                                              {"bf16", 2},
                                              {"i64", 8},
                                              {"i32", 4},
                                              {"i16", 2},
                                              {"i8", 1},
                                              {"u64", 8},
                                              {"u32", 4},
                                              {"u16", 2},
                                              {"u8", 1},
                                              {"bool", 1}}};

float from_bf16(std::uint16_t bits) { return std::bit_cast<float>(std::uint32_t{bits} << 16); }

float from_f16(std::uint16_t bits) {
  const std::uint32_t sign = std::uint32_t{bits & 0x8000U} << 16;
  const std::uint32_t exponent = bits >> 10 & 0x1FU, fraction = bits & 0x3FFU;
  if (exponent == 0) {  // zero or subnormal: fraction * 2^-24, exact in f32
    const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
    return sign != 0 ? -magnitude : magnitude;
  }
  const std::uint32_t wide = exponent == 31 ? 255 : exponent + (127 - 15);
  return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

template <typename T, typename Convert>
std::vector<float> converted(std::span<const std::byte> bytes, Convert convert) {
  std::vector<float> values(bytes.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T element;
    std::memcpy(&element, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = convert(element);
  }
  return values;
}

bool starts_with(std::span<const std::byte> bytes, std::string_view text, std::size_t at = 0) {
  return bytes.size() >= at + text.size() &&
         std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

// What a file that holds no weights is, where its first bytes tell.
std::string guess(std::span<const std::byte> bytes) {
  using namespace std::string_view_literals;
  if (bytes.empty()) return "; the file is empty";
  if (starts_with(bytes, "version https://git-lfs")) {
    return "; it is a Git LFS pointer: fetch the file itself";
  }
  if (starts_with(bytes, "<")) return "; it looks like a web page: the download went wrong";
  if (starts_with(bytes, "\x1F\x8B"sv)) return "; it is gzip data: decompress it first";
  if (starts_with(bytes, "\x89HDF"sv)) return "; it is an HDF5 file (Keras)";
  if (starts_with(bytes, "ustar", 257)) {
    return "; it is a tar file, as PyTorch wrote them before 0.1.10";
  }
  if (starts_with(bytes, "\x80"sv)) return "; it is a pickle that torch.save did not write";
  return {};
}

}  // namespace

std::string_view name_of(WeightType type) { return kTypes[static_cast<std::size_t>(type)].name; }
std::size_t size_of(WeightType type) { return kTypes[static_cast<std::size_t>(type)].size; }

bool is_real(WeightType type) {
  return type == WeightType::f64 || type == WeightType::f32 || type == WeightType::f16 ||
         type == WeightType::bf16;
}

std::string WeightTensor::text() const {
  return fmt::format("{} {}", dims_text(dims), name_of(type));
}

std::vector<float> WeightTensor::to_float() const {
  switch (type) {
    case WeightType::f64:
      return converted<double>(bytes, [](double value) { return static_cast<float>(value); });
    case WeightType::f32:
      return converted<float>(bytes, [](float value) { return value; });
    case WeightType::f16:
      return converted<std::uint16_t>(bytes, from_f16);
    case WeightType::bf16:
      return converted<std::uint16_t>(bytes, from_bf16);
    default:
      fail("{} contains whole numbers ({}), not weights", name, name_of(type));
  }
}

const WeightTensor* WeightFile::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const WeightTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

WeightFile open_weights(const std::filesystem::path& path) {
  auto mapping = std::make_shared<const MappedFile>(path);
  const std::span<const std::byte> bytes = mapping->bytes();
  if (is_torch_zip(bytes)) return read_torch_zip(std::move(mapping));
  if (is_torch_legacy(bytes)) return read_torch_legacy(std::move(mapping));
  if (is_safetensors(bytes)) return read_safetensors(std::move(mapping));
  bad_input("{}: is not a weight file; expected safetensors, or a file written by torch.save{}",
            path.string(), guess(bytes));
}

}  // namespace ridgeline
