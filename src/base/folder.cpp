#include "base/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <new>
#include <string_view>

#include "base/error.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

struct CloseFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

bool is_entry(std::string_view name) { return name != "." && name != ".."; }

fs::file_type type_of(const dirent& entry) {
  return entry.d_type == DT_DIR   ? fs::file_type::directory
         : entry.d_type == DT_REG ? fs::file_type::regular
         : entry.d_type == DT_LNK ? fs::file_type::symlink
                                  : fs::file_type::unknown;
}

bool remove_below(int above, const char* name) noexcept {
  if (unlinkat(above, name, 0) == 0 || errno == ENOENT) return true;
  const int file = openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return false;
  DIR* const folder = fdopendir(file);
  if (folder == nullptr) {
    close(file);
    return false;
  }
  while (const dirent* entry = readdir(folder)) {
    if (is_entry(entry->d_name)) (void)remove_below(file, entry->d_name);
  }
  closedir(folder);
  return unlinkat(above, name, AT_REMOVEDIR) == 0;
}

}  // namespace

std::vector<FolderEntry> entries_in(const fs::path& folder, std::error_code& error) {
  std::vector<FolderEntry> found;
  const std::unique_ptr<DIR, CloseFolder> entries(opendir(folder.c_str()));
  if (entries == nullptr && errno == ENOMEM) throw std::bad_alloc();
  error.assign(entries == nullptr ? errno : 0, std::generic_category());
  while (entries != nullptr) {
    errno = 0;
    const dirent* entry = readdir(entries.get());
    if (entry == nullptr) {
      error.assign(errno, std::generic_category());
      break;
    }
    if (is_entry(entry->d_name)) found.push_back({entry->d_name, type_of(*entry)});
  }
  std::sort(found.begin(), found.end(),
            [](const FolderEntry& a, const FolderEntry& b) { return a.name < b.name; });
  return found;
}

std::vector<std::string> names_in(const fs::path& folder, std::error_code& error) {
  std::vector<std::string> names;
  for (FolderEntry& entry : entries_in(folder, error)) names.push_back(std::move(entry.name));
  return names;
}

std::vector<std::string> files_below(const fs::path& folder) {
  std::vector<std::string> files;
  std::vector<std::string> waiting = {""};
  while (!waiting.empty()) {
    const std::string below = std::move(waiting.back());
    waiting.pop_back();
    std::error_code error;
    for (const auto& [name, type] : entries_in(folder / below, error)) {
      std::error_code ignored;
      const bool is_folder = type == fs::file_type::unknown
                                 ? fs::symlink_status(folder / below / name, ignored).type() ==
                                       fs::file_type::directory
                                 : type == fs::file_type::directory;
      (is_folder ? waiting : files).push_back(below + name + (is_folder ? "/" : ""));
    }
    if (error) bad_input("{}: cannot be read: {}", (folder / below).string(), error.message());
  }
  std::sort(files.begin(), files.end());
  return files;
}

void remove_tree(const fs::path& path) noexcept {
  // A second time: what kept it from being removed may have passed.
  if (!remove_below(AT_FDCWD, path.c_str())) (void)remove_below(AT_FDCWD, path.c_str());
}

NewFolder::NewFolder(fs::path path) : path_(std::move(path)) {
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) fail("{}: cannot be made: {}", path_.string(), error.message());
}

NewFolder::~NewFolder() {
  if (!kept_) remove_tree(path_);
}

void NewFolder::rename_to(const fs::path& path) {
  fs::path next = path;  // nothing may fail after the renaming
  std::error_code error;
  fs::rename(path_, next, error);
  if (error)
    fail("{}: cannot be renamed to {}: {}", path_.string(), next.string(), error.message());
  path_.swap(next);
}

}  // namespace ridgeline
