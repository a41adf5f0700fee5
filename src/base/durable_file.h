#pragma once

// Files that are there whole or not at all, even after a power cut: written beside their place,
// flushed to the disk, then renamed.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace ridgeline {

class DurableFile {
 public:
  // Opens a temporary file beside `path`. All functions throw a failure that names `path`; what was
  // there before then stays as it was.
  explicit DurableFile(std::filesystem::path path);
  // Without commit() the temporary file goes away.
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Flushes and renames.
  void commit();

 private:
  [[noreturn]] void give_up() const;

  std::filesystem::path path_, temporary_;
  int file_ = -1;
};

// Flushes the names in a folder: what was renamed or removed in it stays so.
void sync_folder(const std::filesystem::path& folder);

}  // namespace ridgeline
