#include "lab/board/event_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "lab/board/wire.h"

namespace ridgeline {
namespace {

constexpr std::chrono::seconds kPatience{2};                // between two flushes
constexpr std::size_t kMostWaiting = std::size_t{1} << 20;  // bytes

// Fields of the messages Event, Summary, Summary.Value, SummaryMetadata and TensorProto that we
// write; the numbers are those of TensorFlow's definitions.
namespace event {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
}
namespace summary {
constexpr int kValue = 1;
}
namespace value {
constexpr int kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;
}
namespace metadata {
constexpr int kPluginData = 1, kDataClass = 4;
constexpr int kPluginName = 1;
constexpr int kDataClassTensor = 2;
}  // namespace metadata
namespace tensor {
constexpr int kDtype = 1, kShape = 2, kStrings = 8;
constexpr int kDimension = 2, kSize = 1;
constexpr int kDtypeString = 7;
}  // namespace tensor

std::string host_name() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

WireMessage event_at(double wall_time, std::int64_t step) {
  WireMessage message;
  message.real64(event::kWallTime, wall_time);
  if (step != 0) message.integer(event::kStep, step);
  return message;
}

std::string with_summary(WireMessage event, const WireMessage& summary_value) {
  WireMessage whole;
  whole.bytes(summary::kValue, summary_value.text());
  return event.bytes(event::kSummary, whole.text()).text();
}

// Folders that go away again where nothing was put into them, the deepest first.
struct EmptyFolders {
  ~EmptyFolders() {
    std::error_code ignored;
    for (const std::filesystem::path& each : folders) std::filesystem::remove(each, ignored);
  }
  std::vector<std::filesystem::path> folders;
};

}  // namespace

double wall_time_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

EventFile::EventFile(const std::filesystem::path& folder) : flushed_(Clock::now()) {
  std::error_code error;
  EmptyFolders made;
  if (!std::filesystem::exists(folder, error)) made.folders.push_back(folder);
  std::filesystem::create_directories(folder, error);
  if (error) fail("{}: cannot be made: {}", folder.string(), error.message());
  static std::atomic<int> number = 0;
  const double now = wall_time_now();
  do {
    path_ = folder / fmt::format("events.out.tfevents.{:010}.{}.{}.{}",
                                 static_cast<std::int64_t>(now), host_name(), getpid(), number++);
    file_ = open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
  } while (file_ < 0 && errno == EEXIST);
  if (file_ < 0) fail("{}: cannot be written: {}", path_.string(), std::strerror(errno));
  append(event_at(now, 0).bytes(event::kFileVersion, "brain.Event:2").text());
  flush();
}

EventFile::~EventFile() {
  flush();
  close(file_);
}

void EventFile::scalar(std::string_view tag, std::int64_t step, double wall_time, double value) {
  WireMessage one;
  one.bytes(value::kTag, tag).real32(value::kSimpleValue, static_cast<float>(value));
  append(with_summary(event_at(wall_time, step), one));
}

void EventFile::text(std::string_view tag, std::string_view text) {
  WireMessage plugin, meta, dimension, shape, strings, one;
  plugin.bytes(metadata::kPluginName, "text");
  meta.bytes(metadata::kPluginData, plugin.text())
      .integer(metadata::kDataClass, metadata::kDataClassTensor);
  dimension.integer(tensor::kSize, 1);
  shape.bytes(tensor::kDimension, dimension.text());
  strings.integer(tensor::kDtype, tensor::kDtypeString)
      .bytes(tensor::kShape, shape.text())
      .bytes(tensor::kStrings, text);
  one.bytes(value::kTag, tag)
      .bytes(value::kTensor, strings.text())
      .bytes(value::kMetadata, meta.text());
  append(with_summary(event_at(wall_time_now(), 0), one));
}

void EventFile::append(std::string_view event) {
  if (!trouble_.empty()) return;
  waiting_ += framed(event);
  if (waiting_.size() >= kMostWaiting || Clock::now() - flushed_ >= kPatience) flush();
}

void EventFile::flush() {
  flushed_ = Clock::now();
  std::string_view rest = waiting_;
  while (!rest.empty() && trouble_.empty()) {
    const ssize_t written = write(file_, rest.data(), rest.size());
    if (written >= 0) {
      rest.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      trouble_ = fmt::format("{}: cannot be written: {}", path_.string(), std::strerror(errno));
      // What did fit of the next record would only confuse readers.
      if (ftruncate(file_, whole_) != 0) trouble_ += "; its end is broken";
    }
  }
  whole_ += static_cast<off_t>(waiting_.size());
  waiting_.clear();
}

void check_event_folder(const std::filesystem::path& folder) {
  namespace fs = std::filesystem;
  std::error_code error;
  EmptyFolders made;  // what another program has put something into stays
  for (fs::path each = fs::absolute(folder).lexically_normal(); !fs::exists(each, error);
       each = each.parent_path()) {
    made.folders.push_back(each);
  }
  fs::create_directories(folder, error);
  std::string reason = error.message();
  std::string probe = (folder / "probe.XXXXXX").string();
  const int file = error ? -1 : mkstemp(probe.data());
  if (file >= 0) {
    close(file);
    unlink(probe.c_str());
  } else if (!error) {
    reason = std::strerror(errno);
  }
  if (file < 0) {
    bad_input(
        "{}: event files cannot be written there: {}; name a folder that can be made or "
        "written",
        folder.string(), reason);
  }
}

}  // namespace ridgeline
