#pragma once

// Where images come from that are not kept in memory as pixels: files, packs, and memory itself.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ridgeline {

// One image as its source has it.
struct StoredImage {
  std::span<const std::uint8_t> bytes;
  bool decoded = false;  // pixels, channels x height x width; else a JPEG or PNG stream
  int channels = 0, height = 0, width = 0;  // of decoded ones
};

// All functions may be called from several threads at once.
class ImageSource {
 public:
  virtual ~ImageSource() = default;
  // The bytes lie in the source or in `scratch`, and are valid while neither changes. What cannot
  // be read is a bad_input Error that names it.
  [[nodiscard]] virtual StoredImage fetch(std::int32_t number,
                                          std::vector<std::uint8_t>& scratch) const = 0;
  // For messages: the file, or the place in a pack.
  [[nodiscard]] virtual std::string name(std::int32_t number) const = 0;
};

// Image files, read when they are asked for.
class FileImages final : public ImageSource {
 public:
  // `files` are relative to `root`.
  FileImages(std::filesystem::path root, std::vector<std::string> files)
      : root_(std::move(root)), files_(std::move(files)) {}
  [[nodiscard]] StoredImage fetch(std::int32_t number,
                                  std::vector<std::uint8_t>& scratch) const override;
  [[nodiscard]] std::string name(std::int32_t number) const override;

 private:
  std::filesystem::path root_;
  std::vector<std::string> files_;
};

// Pixels in memory that are cropped or resized when they are asked for.
class MemoryImages final : public ImageSource {
 public:
  MemoryImages(std::vector<std::uint8_t> pixels, int channels, int height, int width)
      : pixels_(std::move(pixels)), channels_(channels), height_(height), width_(width) {}
  [[nodiscard]] StoredImage fetch(std::int32_t number,
                                  std::vector<std::uint8_t>& scratch) const override;
  [[nodiscard]] std::string name(std::int32_t number) const override;

 private:
  std::vector<std::uint8_t> pixels_;
  int channels_, height_, width_;
};

// The bytes of a whole file, as they are, into `bytes` (whose room is kept from file to file).
void read_bytes(const std::filesystem::path& path, std::vector<std::uint8_t>& bytes);

}  // namespace ridgeline
