#include "report/report_folder.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/folder.h"
#include "base/text_file.h"

namespace ridgeline::report {
namespace {

namespace fs = std::filesystem;

// Tells a report's folder from others: the names of all its files, one a line.
constexpr const char* kMarker = ".ridgeline-report";

std::set<std::string> files_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const std::string& name : files_below(folder)) names.insert(name);
  names.erase(kMarker);
  return names;
}

// LaTeX leaves these beside report.tex.
bool is_latex_product(const std::string& name) {
  return name.starts_with("report.") && name != "report.md" && name != "report.tex";
}

void check_target(const fs::path& target) {
  if (!fs::exists(target)) return;
  if (!fs::is_directory(target)) {
    bad_input("{}: is a file, not a folder to write a report into", target.string());
  }
  const std::string current = fs::current_path().string() + '/';
  if (current.starts_with(target.string() + '/')) {
    bad_input(
        "{}: a report replaces its folder as a whole, and this one is being worked in; give "
        "it one of its own",
        target.string());
  }
  if (fs::is_empty(target)) return;
  if (!fs::exists(target / kMarker)) {
    bad_input(
        "{}: is not empty and not a former report, so it is left alone; give another folder "
        "with --out",
        target.string());
  }
  std::set<std::string> written;
  std::istringstream lines(read_text(target / kMarker));
  for (std::string line; std::getline(lines, line);) written.insert(line);
  for (const std::string& name : files_in(target)) {
    if (written.contains(name) || is_latex_product(name)) continue;
    bad_input(
        "{}: the report did not write it, and the folder is replaced as a whole; move it "
        "away, or give another folder with --out",
        (target / name).string());
  }
}

// Both at once where the system can; else there is a moment with neither, never with half of one.
void exchange(const fs::path& fresh, const fs::path& target) {
  if (renameat2(AT_FDCWD, fresh.c_str(), AT_FDCWD, target.c_str(), RENAME_EXCHANGE) == 0) return;
  const fs::path old = target.string() + ".old";
  std::error_code error;
  fs::rename(target, old, error);
  const bool away = !error;
  if (away) fs::rename(fresh, target, error);
  if (error) {
    std::error_code ignored;
    if (away) fs::rename(old, target, ignored);
    fail("{}: cannot be replaced: {}", target.string(), error.message());
  }
  remove_tree(old);
}

}  // namespace

ReportFolder::ReportFolder(const fs::path& target) {
  std::error_code error;
  target_ = fs::weakly_canonical(fs::absolute(target), error);
  if (error) bad_input("{}: {}", target.string(), error.message());
  // "report/" names the same folder.
  if (!target_.has_filename()) target_ = target_.parent_path();
  check_target(target_);
  new_ = target_.string() + ".new";
  if (fs::exists(new_) && !fs::is_empty(new_) && !fs::exists(new_ / kMarker)) {
    bad_input("{}: is in the way and was not made by a report; move it away", new_.string());
  }
  for (fs::path above = new_.parent_path(); !fs::exists(above); above = above.parent_path()) {
    made_.push_back(above);
  }
  const fs::path marker = new_ / kMarker;
  fs::create_directories(new_, error);
  if (error) bad_input("{}: cannot be made: {}", new_.string(), error.message());
  // The process that holds the lock is writing; without one, a program was killed there.
  lock_ = open(marker.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0644);
  if (lock_ < 0) {
    const std::string reason = std::strerror(errno);
    fs::remove(new_, error);
    bad_input("{}: cannot be written: {}", new_.string(), reason);
  }
  if (flock(lock_, LOCK_EX | LOCK_NB) != 0) {
    close(lock_);
    lock_ = -1;
    bad_input("{}: another report is being written there", target_.string());
  }
  try {
    for (const std::string& name : names_in(new_, error)) {
      if (name != kMarker) remove_tree(new_ / name);
    }
  } catch (...) {
    remove_tree(new_);
    close(lock_);
    throw;
  }
}

ReportFolder::~ReportFolder() {
  if (lock_ < 0) return;
  std::error_code ignored;
  remove_tree(new_);
  if (!committed_) {
    for (const fs::path& folder : made_) fs::remove(folder, ignored);
  }
  close(lock_);
}

void ReportFolder::write(const std::string& name, const std::string& contents) const {
  const fs::path path = new_ / name;
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  write_text(path, contents);
}

void ReportFolder::commit() {
  std::string names;
  for (const std::string& name : files_in(new_)) names += name + '\n';
  // Through another descriptor: the lock belongs to ours.
  write_text(new_ / kMarker, names);
  if (fs::exists(target_)) {
    exchange(new_, target_);
  } else {
    std::error_code error;
    fs::rename(new_, target_, error);
    if (error) fail("{}: cannot be made: {}", target_.string(), error.message());
  }
  committed_ = true;
  // What is at FOLDER.new now is the former report, if anything: the destructor takes it away.
}

}  // namespace ridgeline::report
