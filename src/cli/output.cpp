#include "cli/output.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/error.h"

namespace ridgeline::cli {
namespace {

namespace fs = std::filesystem;

struct Close {
  void operator()(std::FILE* file) const { (void)std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, Close>;

std::string beside(const std::string& path) { return fmt::format("{}.{}.part", path, getpid()); }

}  // namespace

void write_file_atomically(const std::string& path, const std::string& contents) {
  const std::string temporary = beside(path);
  File file(std::fopen(temporary.c_str(), "wb"));
  if (file == nullptr) fail("{}: cannot be written: {}", path, std::strerror(errno));
  bool good = std::fwrite(contents.data(), 1, contents.size(), file.get()) == contents.size();
  good = std::fflush(file.get()) == 0 && good;
  good = good && fsync(fileno(file.get())) == 0;
  file.reset();
  if (!good || std::rename(temporary.c_str(), path.c_str()) != 0) {
    const std::string reason = std::strerror(errno);
    (void)std::remove(temporary.c_str());
    fail("{}: cannot be written: {}", path, reason);
  }
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
