#include "cli/output.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/durable_file.h"
#include "base/error.h"
#include "base/parse.h"

namespace ridgeline::cli {

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

std::optional<std::size_t> output_width() {
  constexpr std::size_t kLeast = 20;  // less is no terminal
  if (const char* told = std::getenv("COLUMNS")) {
    const auto width = number_in<std::size_t>(told);
    if (width && *width >= kLeast) return width;
  }
  winsize size{};
  if (isatty(STDOUT_FILENO) == 0 || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0) {
    return std::nullopt;
  }
  return size.ws_col >= kLeast ? std::optional<std::size_t>(size.ws_col) : std::nullopt;
}

std::string csv_cell(const std::string& text) {
  if (text.find_first_of(",\"\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string percent_text(double share) { return fmt::format("{:.2f}%", 100.0 * share); }

std::string share_or_na(const std::optional<double>& share) {
  return share ? fmt::format("{:.1f}%", 100.0 * *share) : "n/a";
}

std::string giga(const std::optional<double>& number) {
  return number ? fmt::format("{:.4g}", *number / 1e9) : "n/a";
}

}  // namespace ridgeline::cli
