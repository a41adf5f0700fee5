#include "data/image_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace ridgeline {
namespace {

constexpr off_t kLargestFile = off_t{1} << 30;  // no image is that large

class Descriptor {
 public:
  explicit Descriptor(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (fd_ < 0) bad_input("{}: cannot be opened: {}", path, std::strerror(errno));
  }
  ~Descriptor() { close(fd_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int get() const { return fd_; }

 private:
  int fd_;
};

}  // namespace

void read_bytes(const std::filesystem::path& path, std::vector<std::uint8_t>& bytes) {
  const std::string name = path.string();
  const Descriptor file(name);
  struct stat status {};
  if (fstat(file.get(), &status) != 0) {
    bad_input("{}: cannot be read: {}", name, std::strerror(errno));
  }
  if (!S_ISREG(status.st_mode)) bad_input("{}: is not a regular file", name);
  if (status.st_size > kLargestFile) {
    bad_input("{}: {} bytes are more than an image file may have ({})", name, status.st_size,
              kLargestFile);
  }
  bytes.resize(static_cast<std::size_t>(status.st_size));
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = read(file.get(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) bad_input("{}: cannot be read: {}", name, std::strerror(errno));
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
}

StoredImage FileImages::fetch(std::int32_t number, std::vector<std::uint8_t>& scratch) const {
  read_bytes(root_ / files_[static_cast<std::size_t>(number)], scratch);
  return {.bytes = scratch};
}

std::string FileImages::name(std::int32_t number) const {
  return (root_ / files_[static_cast<std::size_t>(number)]).string();
}

StoredImage MemoryImages::fetch(std::int32_t number, std::vector<std::uint8_t>&) const {
  const std::size_t bytes = static_cast<std::size_t>(channels_) *
                            static_cast<std::size_t>(height_) * static_cast<std::size_t>(width_);
  return {.bytes = std::span(pixels_).subspan(static_cast<std::size_t>(number) * bytes, bytes),
          .decoded = true,
          .channels = channels_,
          .height = height_,
          .width = width_};
}

std::string MemoryImages::name(std::int32_t number) const {
  return fmt::format("image {}", number);
}

}  // namespace ridgeline
