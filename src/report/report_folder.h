#pragma once

// A folder that a report is written into: there whole or not at all. The files are written into
// FOLDER.new beside it, which then takes the place of a former report in one step.

#include <filesystem>
#include <string>
#include <vector>

namespace ridgeline::report {

class ReportFolder {
 public:
  // Throws bad_input where no report can be: `target` is a file, holds something that no report
  // wrote, cannot be written, or another program is writing a report there.
  explicit ReportFolder(const std::filesystem::path& target);
  // Without commit() nothing is left, and what was there stays.
  ~ReportFolder();
  ReportFolder(const ReportFolder&) = delete;
  ReportFolder& operator=(const ReportFolder&) = delete;

  // Where to write: FOLDER.new.
  [[nodiscard]] const std::filesystem::path& path() const { return new_; }
  // `name` may have folders in it, which are made. Throws a failure.
  void write(const std::string& name, const std::string& contents) const;
  // Puts the folder into its place, and takes a former one away.
  void commit();

 private:
  std::filesystem::path target_, new_;
  std::vector<std::filesystem::path> made_;  // folders above it, the innermost first
  int lock_ = -1;
  bool committed_ = false;
};

}  // namespace ridgeline::report
