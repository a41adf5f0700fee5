#pragma once

// Folders, listed and removed. The iterators and remove_all() of <filesystem> end the program when
// memory runs out within them; these functions do not.

#include <filesystem>
#include <string>
#include <system_error>
#include <vector>

namespace ridgeline {

struct FolderEntry {
  std::string name;
  std::filesystem::file_type type;  // `symlink` for any link, `unknown` where the system is silent
};

// What a folder holds, by name, without "." and "..". `error` tells why that is not all.
[[nodiscard]] std::vector<FolderEntry> entries_in(const std::filesystem::path& folder,
                                                  std::error_code& error);
[[nodiscard]] std::vector<std::string> names_in(const std::filesystem::path& folder,
                                                std::error_code& error);
// The files of a folder and of the folders in it, by their paths from there, in order. Bad_input
// naming the folder that cannot be read.
[[nodiscard]] std::vector<std::string> files_below(const std::filesystem::path& folder);

// Removes a file, or a folder with everything below it; nothing happens where there is none. What
// cannot be removed stays.
void remove_tree(const std::filesystem::path& path) noexcept;

// A folder that goes away with the object, unless it was kept.
class NewFolder {
 public:
  // Makes it, and the folders above it. All functions throw a failure that names it.
  explicit NewFolder(std::filesystem::path path);
  ~NewFolder();
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  void rename_to(const std::filesystem::path& path);
  void keep() { kept_ = true; }

 private:
  std::filesystem::path path_;
  bool kept_ = false;
};

}  // namespace ridgeline
