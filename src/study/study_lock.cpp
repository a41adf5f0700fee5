#include "study/study_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/error.h"

namespace ridgeline::study {
namespace {

constexpr std::chrono::milliseconds kPace{50};

}  // namespace

StudyLock::StudyLock(const std::filesystem::path& store, const std::string& uuid,
                     double patience_seconds)
    : path_(store.string() + "-study-" + uuid) {
  const auto start = std::chrono::steady_clock::now();
  while (!try_lock()) {
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - start;
    if (waited.count() > patience_seconds) {
      bad_input(
          "this study is running already, in another program that writes to {}; --restart starts "
          "another one",
          store.string());
    }
    std::this_thread::sleep_for(kPace);
  }
}

bool StudyLock::try_lock() {
  // Handed on to commands: no close-on-exec.
  file_ = open(path_.c_str(), O_RDWR | O_CREAT, 0666);
  if (file_ < 0) fail("{}: cannot be written: {}", path_.string(), std::strerror(errno));
  struct stat held {
  }, named{};
  const bool locked = flock(file_, LOCK_EX | LOCK_NB) == 0;
  // A former holder may have removed the file since we opened it.
  const bool same = locked && fstat(file_, &held) == 0 && stat(path_.c_str(), &named) == 0 &&
                    held.st_ino == named.st_ino && held.st_dev == named.st_dev;
  if (same) return true;
  close(file_);
  file_ = -1;
  return false;
}

StudyLock::~StudyLock() {
  (void)unlink(path_.c_str());
  close(file_);
}

}  // namespace ridgeline::study
