#include "measure/telemetry/sensor_file.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

namespace ridgeline {
namespace {

constexpr std::size_t kFirstBuffer = 4096;

std::string_view without_blanks(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t\n");
  return begin == std::string_view::npos ? std::string_view{} : text.substr(begin);
}

}  // namespace

SensorFile::SensorFile(std::filesystem::path path) : path_(std::move(path)) {}

SensorFile::SensorFile(SensorFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      text_(std::move(other.text_)),
      reason_(std::move(other.reason_)) {}

SensorFile::~SensorFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void SensorFile::fail_with(int error) {
  std::string words = std::strerror(error);
  words[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(words[0])));
  reason_ = fmt::format("{} ({})", words, path_.string());
  if (descriptor_ >= 0) close(descriptor_);
  descriptor_ = -1;
}

std::optional<std::string_view> SensorFile::read() {
  if (descriptor_ < 0) descriptor_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) {
    fail_with(errno);
    return std::nullopt;
  }
  if (text_.size() < kFirstBuffer) text_.resize(kFirstBuffer);
  std::size_t size = 0;
  for (;;) {
    if (size == text_.size()) text_.resize(2 * size);
    const ssize_t got =
        pread(descriptor_, text_.data() + size, text_.size() - size, static_cast<off_t>(size));
    if (got < 0) {
      if (errno == EINTR) continue;
      fail_with(errno);
      return std::nullopt;
    }
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  reason_.clear();
  return std::string_view(text_).substr(0, size);
}

std::optional<double> SensorFile::number() {
  const std::optional<std::string_view> text = read();
  if (!text) return std::nullopt;
  const std::optional<double> value = leading_number(*text);
  if (!value) reason_ = fmt::format("no number in {}", path_.string());
  return value;
}

std::optional<double> leading_number(std::string_view text) {
  text = without_blanks(text);
  double value = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{}) return std::nullopt;
  return value;
}

std::optional<double> number_after(std::string_view text, std::string_view word) {
  for (std::size_t at = text.find(word); at != std::string_view::npos;
       at = text.find(word, at + 1)) {
    if (at == 0 || text[at - 1] == '\n') return leading_number(text.substr(at + word.size()));
  }
  return std::nullopt;
}

std::optional<double> nth_number(std::string_view line, int position) {
  line = without_blanks(line);
  for (; position > 0; --position) {
    const std::size_t blank = line.find_first_of(" \t\n");
    if (blank == std::string_view::npos) return std::nullopt;
    line = without_blanks(line.substr(blank));
  }
  return leading_number(line);
}

std::string word_of(const std::filesystem::path& path) {
  SensorFile file(path);
  const std::optional<std::string_view> text = file.read();
  if (!text) return {};
  return std::string(text->substr(0, text->find_last_not_of(" \t\n") + 1));
}

}  // namespace ridgeline
