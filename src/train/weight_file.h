#pragma once

// Tensors by name, from whatever file holds them: safetensors, or what torch.save wrote.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dims.h"
#include "base/mapped_file.h"

namespace ridgeline {

enum class WeightType : std::uint8_t {
  f64,
  f32,
  f16,
  bf16,
  i64,
  i32,
  i16,
  i8,
  u64,
  u32,
  u16,
  u8,
  boolean
};

// No tensor of a network has more dimensions: a file that claims so is broken.
inline constexpr std::size_t kLargestRank = 16;

[[nodiscard]] std::string_view name_of(WeightType type);  // "f32"
[[nodiscard]] std::size_t size_of(WeightType type);
[[nodiscard]] bool is_real(WeightType type);

// A view on a file's tensor: row-major, little-endian, at any alignment.
struct WeightTensor {
  std::string name;
  WeightType type = WeightType::f32;
  std::vector<std::int64_t> dims;
  std::span<const std::byte> bytes;

  [[nodiscard]] std::int64_t elements() const {
    return static_cast<std::int64_t>(bytes.size() / size_of(type));
  }
  // "64x3x7x7 f16"
  [[nodiscard]] std::string text() const;
  // The elements as f32; REQUIRES: is_real(type).
  [[nodiscard]] std::vector<float> to_float() const;
};

struct WeightFile {
  std::filesystem::path path;
  std::string format;  // "safetensors", "PyTorch zip", "PyTorch before 1.6"
  std::vector<WeightTensor> tensors;
  std::map<std::string, std::string> metadata;

  // What the tensors lie in.
  std::shared_ptr<const MappedFile> mapping;
  std::deque<std::vector<std::byte>> owned;

  // By name; null where there is none.
  [[nodiscard]] const WeightTensor* find(std::string_view name) const;
};

// Decides by the contents, not by the name. Anything wrong with the file is a bad_input Error that
// names it and says what was expected.
[[nodiscard]] WeightFile open_weights(const std::filesystem::path& path);

}  // namespace ridgeline
