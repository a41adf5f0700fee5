#include "base/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace ridgeline {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 30;  // Linux writes at most 2 GiB at once
constexpr mode_t kMode = 0666;                        // less what the user's umask takes away

}  // namespace

DurableFile::DurableFile(std::filesystem::path path) : path_(std::move(path)) {
  temporary_ = fmt::format("{}.{}.part", path_.string(), getpid());
  file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
  if (file_ < 0) give_up();
}

DurableFile::~DurableFile() {
  if (file_ < 0) return;
  close(file_);
  (void)unlink(temporary_.c_str());
}

void DurableFile::give_up() const {
  fail("{}: cannot be written: {}", path_.string(), std::strerror(errno));
}

void DurableFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_, bytes.data(), std::min(bytes.size(), kPiece));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) give_up();
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void DurableFile::commit() {
  if (fsync(file_) != 0) give_up();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) give_up();
  close(file_);
  file_ = -1;
  sync_folder(path_.parent_path());
}

void sync_folder(const std::filesystem::path& folder) {
  const std::filesystem::path named = folder.empty() ? "." : folder;
  const int file = open(named.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) fail("{}: cannot be opened: {}", named.string(), std::strerror(errno));
  const bool good = fsync(file) == 0;
  const int reason = errno;
  close(file);
  // Some file systems have no way to flush a folder, and say so.
  if (!good && reason != EINVAL) {
    fail("{}: cannot be flushed: {}", named.string(), std::strerror(reason));
  }
}

}  // namespace ridgeline
