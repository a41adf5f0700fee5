#pragma once

// A file that TensorBoard opens: scalars over steps, and texts.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace ridgeline {

// Whole records only, in the order of the calls: what a killed program leaves can be read up to its
// last flush. A disk that takes nothing more does not end the run: trouble() tells of it, and
// nothing more is written. Not for several threads at once.
class EventFile {
 public:
  // Makes the folder where it is missing and in it a file that no other program writes,
  // events.out.tfevents.<time>.<host>.<process>.<number>. Throws a failure that names it.
  explicit EventFile(const std::filesystem::path& folder);
  ~EventFile();  // flushes
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // `wall_time` in seconds since 1970. TensorBoard knows the value as a float.
  void scalar(std::string_view tag, std::int64_t step, double wall_time, double value);
  void text(std::string_view tag, std::string_view text);  // Markdown, at step 0
  // Hands on to the system what was written; done by itself every two seconds of writing.
  void flush();

  [[nodiscard]] const std::string& trouble() const { return trouble_; }  // empty: none
  [[nodiscard]] const std::filesystem::path& path() const { return path_; }

 private:
  void append(std::string_view event);

  std::filesystem::path path_;
  int file_ = -1;
  std::string waiting_;  // records that are not written yet
  off_t whole_ = 0;      // bytes of the records in the file
  std::string trouble_;
  std::chrono::steady_clock::time_point flushed_;
};

// Throws bad_input when an EventFile could not be made there; leaves nothing behind.
void check_event_folder(const std::filesystem::path& folder);

// Seconds since 1970.
[[nodiscard]] double wall_time_now();

}  // namespace ridgeline
