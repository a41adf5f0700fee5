#include "base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace ridgeline {
namespace {

class Descriptor {
 public:
  // Without O_NONBLOCK a pipe would let us wait for a writer.
  explicit Descriptor(const std::filesystem::path& path)
      : number_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (number_ < 0) bad_input("{}: cannot be opened: {}", path.string(), std::strerror(errno));
  }
  ~Descriptor() { close(number_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  int number_;
};

}  // namespace

MappedFile::MappedFile(std::filesystem::path path) : path_(std::move(path)) {
  const Descriptor file(path_);
  struct stat info {};
  if (fstat(file.number(), &info) != 0) {
    bad_input("{}: cannot be read: {}", path_.string(), std::strerror(errno));
  }
  if (S_ISDIR(info.st_mode)) bad_input("{}: is a folder; a file was expected", path_.string());
  if (!S_ISREG(info.st_mode)) bad_input("{}: is not a regular file", path_.string());
  size_ = static_cast<std::size_t>(info.st_size);
  if (size_ == 0) return;
  void* memory = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.number(), 0);
  if (memory == MAP_FAILED) {
    bad_input("{}: cannot be mapped: {}", path_.string(), std::strerror(errno));
  }
  data_ = static_cast<const std::byte*>(memory);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) munmap(const_cast<std::byte*>(data_), size_);
}

}  // namespace ridgeline
