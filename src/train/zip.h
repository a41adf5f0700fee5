#pragma once

// Zip archives as torch.save writes them: the list of entries and the bytes of one.

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ridgeline {

class ZipArchive {
 public:
  // REQUIRES: `bytes` outlives the archive. Bad_input naming `where` when the list of entries is
  // broken.
  ZipArchive(std::span<const std::byte> bytes, std::string where);

  struct Entry {
    std::uint64_t header = 0;  // where its local header begins
    std::uint64_t packed = 0, size = 0;
    std::uint32_t checksum = 0;
    std::uint16_t method = 0;
  };
  [[nodiscard]] const std::map<std::string, Entry, std::less<>>& entries() const {
    return entries_;
  }

  // Contents that lie in the file as they are come as a view, deflated ones in `room`, which then
  // holds them. Bad_input when the entry is absent, broken or fails its checksum, or when more than
  // 64 times the archive's own size would be inflated in all.
  [[nodiscard]] std::span<const std::byte> read(std::string_view name,
                                                std::vector<std::byte>& room);

 private:
  template <typename T>
  [[nodiscard]] T number(std::uint64_t at) const;
  void read_directory();
  Entry read_entry(std::uint64_t& at, std::string& name) const;
  void read_zip64(std::span<const std::byte> extra, Entry& entry) const;
  [[nodiscard]] std::vector<std::byte> inflated(std::span<const std::byte> packed,
                                                const Entry& entry, std::string_view name);

  std::span<const std::byte> bytes_;
  std::string where_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::uint64_t inflated_ = 0;
};

}  // namespace ridgeline
