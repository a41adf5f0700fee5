#include "base/text_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "base/error.h"

namespace ridgeline {
namespace {

class File {
 public:
  File(const std::filesystem::path& path, int flags)
      : number_(open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  ~File() {
    if (number_ >= 0) ::close(number_);
  }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] bool close() { return ::close(std::exchange(number_, -1)) == 0; }

 private:
  int number_;
};

}  // namespace

std::string read_text(const std::filesystem::path& path) {
  const File file(path, O_RDONLY);
  if (file.number() < 0) bad_input("{}: cannot be opened: {}", path.string(), std::strerror(errno));
  std::string text;
  std::array<char, 65536> buffer;
  for (;;) {
    const ssize_t count = read(file.number(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) bad_input("{}: cannot be read: {}", path.string(), std::strerror(errno));
    if (count == 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(count));
  }
}

std::string first_line(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

void write_text(const std::filesystem::path& path, std::string_view text) {
  const auto give_up = [&] {
    fail("{}: cannot be written: {}", path.string(), std::strerror(errno));
  };
  File file(path, O_WRONLY | O_CREAT | O_TRUNC);
  if (file.number() < 0) give_up();
  while (!text.empty()) {
    const ssize_t count = write(file.number(), text.data(), text.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) give_up();
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  if (!file.close()) give_up();
}

}  // namespace ridgeline
