#pragma once

// A file mapped into memory for reading: nothing is copied, and a file larger than memory can be
// looked into.

#include <cstddef>
#include <filesystem>
#include <span>

namespace ridgeline {

class MappedFile {
 public:
  // Bad_input naming the file when it cannot be read.
  explicit MappedFile(std::filesystem::path path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  std::filesystem::path path_;
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ridgeline
