#include "base/durable_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

namespace ridgeline {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 30;  // Linux writes at most 2 GiB at once
constexpr mode_t kMode = 0666;                        // less what the user's umask takes away

// The number of the error; 0: flushed.
int flush_folder(const std::filesystem::path& folder) {
  const int file = open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file < 0) return errno;
  const int error = fsync(file) == 0 ? 0 : errno;
  close(file);
  // Some file systems have no way to flush a folder, and say so.
  return error == EINVAL ? 0 : error;
}

}  // namespace

DurableFile::DurableFile(std::filesystem::path path, ErrorKind unopened) : path_(std::move(path)) {
  temporary_ = fmt::format("{}.{}.part", path_.string(), getpid());
  file_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, kMode);
  if (file_ < 0) give_up(unopened);
  pending_ = true;
}

DurableFile::~DurableFile() {
  if (file_ >= 0) close(file_);
  if (pending_) (void)unlink(temporary_.c_str());
}

void DurableFile::give_up(ErrorKind kind) const {
  throw Error(kind, fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno)));
}

void DurableFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_, bytes.data(), std::min(bytes.size(), kPiece));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) give_up();
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

void DurableFile::write_at(std::uint64_t offset, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count =
        pwrite(file_, bytes.data(), std::min(bytes.size(), kPiece), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) give_up();
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
}

void DurableFile::commit() {
  const std::filesystem::path folder = path_.parent_path();
  if (fsync(file_) != 0) give_up();
  if (close(std::exchange(file_, -1)) != 0) give_up();
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) give_up();
  pending_ = false;
  if (const int error = flush_folder(folder); error != 0) {
    fail("{}: is written, but its folder cannot be flushed: {}", path_.string(),
         std::strerror(error));
  }
}

void write_durably(const std::filesystem::path& path, std::string_view text) {
  DurableFile file(path);
  file.write(text);
  file.commit();
}

void sync_folder(const std::filesystem::path& folder) {
  if (const int error = flush_folder(folder); error != 0) {
    fail("{}: cannot be flushed: {}", folder.string(), std::strerror(error));
  }
}

}  // namespace ridgeline
