#pragma once

// Files that are there whole or not at all, even after a power cut: written beside their place,
// flushed to the disk, then renamed.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string_view>

#include "base/error.h"

namespace ridgeline {

class DurableFile {
 public:
  // Opens a temporary file beside `path`. All functions throw a failure that names `path`; what was
  // there before then stays as it was. `unopened` is the kind of error when it cannot be opened.
  explicit DurableFile(std::filesystem::path path, ErrorKind unopened = ErrorKind::failure);
  // Without commit() the temporary file goes away.
  ~DurableFile();
  DurableFile(const DurableFile&) = delete;
  DurableFile& operator=(const DurableFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text))); }
  // Writes over what is there from `offset` on.
  void write_at(std::uint64_t offset, std::span<const std::byte> bytes);
  // Flushes and renames.
  void commit();
  // Whether it has its name, which commit() may find out before it fails to flush that.
  [[nodiscard]] bool in_place() const { return !pending_; }

 private:
  [[noreturn]] void give_up(ErrorKind kind = ErrorKind::failure) const;

  std::filesystem::path path_, temporary_;
  int file_ = -1;
  bool pending_ = false;  // the temporary file is there
};

// The whole of a small file.
void write_durably(const std::filesystem::path& path, std::string_view text);

// Flushes the names in a folder: what was renamed or removed in it stays so.
void sync_folder(const std::filesystem::path& folder);

}  // namespace ridgeline
