#pragma once

// Files of /proc and /sys that are read again and again, and the numbers in them.

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace ridgeline {

// Stays open between readings: opening costs more than reading.
class SensorFile {
 public:
  explicit SensorFile(std::filesystem::path path);
  SensorFile(SensorFile&& other) noexcept;
  SensorFile& operator=(SensorFile&&) = delete;
  SensorFile(const SensorFile&) = delete;
  SensorFile& operator=(const SensorFile&) = delete;
  ~SensorFile();

  // What the file says now, until the next call; nothing when it cannot be read.
  [[nodiscard]] std::optional<std::string_view> read();
  // A file that is one number.
  [[nodiscard]] std::optional<double> number();
  // Why the last reading failed: "permission denied (/sys/class/…)"; empty when it did not.
  [[nodiscard]] const std::string& reason() const { return reason_; }

 private:
  void fail_with(int error);

  std::filesystem::path path_;
  int descriptor_ = -1;
  std::string text_, reason_;
};

// The number at the start of a text, after blanks; nothing when there is none.
[[nodiscard]] std::optional<double> leading_number(std::string_view text);
// The number after a word that begins a line: of "VmRSS:" in "VmRSS:	 1780 kB", 1780.
[[nodiscard]] std::optional<double> number_after(std::string_view text, std::string_view word);
// The number at a position of a line of numbers, from 0.
[[nodiscard]] std::optional<double> nth_number(std::string_view line, int position);
// The text of a small file, without blanks at the end; empty when it cannot be read.
[[nodiscard]] std::string word_of(const std::filesystem::path& path);

}  // namespace ridgeline
