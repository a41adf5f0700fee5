#pragma once

// Keeps a study to one program at a time: a lock on a file beside the store, which the system takes
// back when its holders end, however they end. Commands that the study starts hold it, too: what a
// killed study left behind has ended when the lock can be had again.

#include <filesystem>
#include <string>

namespace ridgeline::study {

class StudyLock {
 public:
  // Waits a little for commands of a killed study to end. Throws bad_input when the study is
  // running.
  StudyLock(const std::filesystem::path& store, const std::string& uuid,
            double patience_seconds = 10.0);
  ~StudyLock();
  StudyLock(const StudyLock&) = delete;
  StudyLock& operator=(const StudyLock&) = delete;

 private:
  [[nodiscard]] bool try_lock();

  std::filesystem::path path_;
  int file_ = -1;
};

}  // namespace ridgeline::study
