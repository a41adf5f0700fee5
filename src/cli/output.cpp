#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/durable_file.h"
#include "base/error.h"

namespace ridgeline::cli {

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

void write_file_atomically(const std::string& path, const std::string& contents) {
  write_durably(path, contents);
}

void print(const std::string& text) {
  const bool good = std::fwrite(text.data(), 1, text.size(), stdout) == text.size();
  if (std::fflush(stdout) != 0 || !good)
    fail("standard output cannot be written: {}", std::strerror(errno));
}

void message(const std::string& text) {
  (void)std::fputs(text.c_str(), stderr);
  (void)std::fflush(stderr);
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string percent_text(double share) { return fmt::format("{:.2f}%", 100.0 * share); }

}  // namespace ridgeline::cli
