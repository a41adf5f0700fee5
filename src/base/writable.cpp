#include "base/writable.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "base/durable_file.h"
#include "base/error.h"

namespace ridgeline {

namespace fs = std::filesystem;

void check_writable(const std::string& path) {
  if (path.empty()) return;
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) bad_input("{}: is a folder, not a file to write", path);
  if (fs::exists(path, ignored) && access(path.c_str(), W_OK) != 0) {
    bad_input("{}: cannot be written: {}", path, std::strerror(errno));
  }
  const DurableFile probe(path, ErrorKind::bad_input);
}

}  // namespace ridgeline
