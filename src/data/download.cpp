#include "data/download.h"

#include <curl/curl.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include "base/digest.h"
#include "base/error.h"
#include "data/file.h"

namespace ridgeline {
namespace {

namespace fs = std::filesystem;

constexpr long kOk = 200, kPartial = 206, kRangeRefused = 416;
constexpr long kSlowBytes = 100, kSlowSeconds = 30;  // slower for longer is a broken connection

struct CloseCurl {
  void operator()(CURL* curl) const { curl_easy_cleanup(curl); }
};

// One request, and what its callbacks need.
struct Transfer {
  CURL* curl = nullptr;
  fs::path part;
  std::int64_t resumed = 0;  // bytes that were there before
  std::unique_ptr<std::FILE, CloseFile> file = nullptr;
  const DownloadProgress* progress = nullptr;
  int write_error = 0;

  // The first bytes of an answer: now it is known whether the server goes on or begins anew.
  bool open() {
    long code = 0;
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &code);
    if (code != kPartial) resumed = 0;
    file.reset(std::fopen(part.c_str(), code == kPartial ? "ab" : "wb"));
    if (!file) write_error = errno;
    return file != nullptr;
  }

  static std::size_t on_data(char* data, std::size_t size, std::size_t count, void* self) {
    auto& transfer = *static_cast<Transfer*>(self);
    if (!transfer.file && !transfer.open()) return 0;
    const std::size_t written = std::fwrite(data, 1, size * count, transfer.file.get());
    if (written != size * count) transfer.write_error = errno;
    return written;
  }
  static int on_progress(void* self, curl_off_t total, curl_off_t now, curl_off_t, curl_off_t) {
    const auto& transfer = *static_cast<Transfer*>(self);
    if (now > 0) {
      (*transfer.progress)(transfer.resumed + now, total > 0 ? transfer.resumed + total : 0);
    }
    return 0;
  }
};

std::string by_hand(const RemoteFile& remote, const fs::path& path) {
  return fmt::format("Without a network, fetch {} elsewhere and put it at {}", remote.url,
                     path.string());
}

bool has_checksum(const fs::path& path, const std::string& md5) {
  return digest_of_file(DigestKind::md5, path) == md5;
}

// The whole answer, or what came of it. Returns the HTTP code (200 for file: addresses).
long transfer_once(const RemoteFile& remote, const fs::path& path, const fs::path& part,
                   const DownloadProgress& progress) {
  static const CURLcode started = curl_global_init(CURL_GLOBAL_DEFAULT);
  ensure(started == CURLE_OK, "libcurl could not start: {}", curl_easy_strerror(started));
  const std::unique_ptr<CURL, CloseCurl> curl(curl_easy_init());
  ensure(curl != nullptr, "libcurl could not start");
  std::error_code absent;
  const std::uintmax_t there = fs::file_size(part, absent);
  Transfer transfer{.curl = curl.get(), .part = part, .progress = &progress};
  if (!absent) transfer.resumed = static_cast<std::int64_t>(there);
  char reason[CURL_ERROR_SIZE] = "";
  curl_easy_setopt(curl.get(), CURLOPT_URL, remote.url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_REDIR_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_CONNECTTIMEOUT, 30L);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_LIMIT, kSlowBytes);
  curl_easy_setopt(curl.get(), CURLOPT_LOW_SPEED_TIME, kSlowSeconds);
  curl_easy_setopt(curl.get(), CURLOPT_FAILONERROR, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_ERRORBUFFER, reason);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &Transfer::on_data);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &transfer);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, &Transfer::on_progress);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, &transfer);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
  if (transfer.resumed > 0) {
    curl_easy_setopt(curl.get(), CURLOPT_RESUME_FROM_LARGE,
                     static_cast<curl_off_t>(transfer.resumed));
  }
  const CURLcode result = curl_easy_perform(curl.get());
  long code = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &code);
  if (transfer.file && std::fclose(transfer.file.release()) != 0) transfer.write_error = errno;
  if (transfer.write_error != 0) {
    fail("{}: cannot be written: {}", part.string(), std::strerror(transfer.write_error));
  }
  if (code == kRangeRefused) return code;
  // A server that knows no ranges: it says 200 and sends everything, which libcurl refuses.
  if (result == CURLE_RANGE_ERROR) return kOk;
  if (result != CURLE_OK) {
    fail("{}: cannot be downloaded: {}{}. {}", remote.url,
         *reason != '\0' ? reason : curl_easy_strerror(result),
         fs::exists(part)
             ? "; the part that was downloaded is kept, and the same command continues from there"
             : "",
         by_hand(remote, path));
  }
  return code;
}

}  // namespace

void download(const RemoteFile& remote, const fs::path& path, const DownloadProgress& progress) {
  std::error_code ignored;
  if (fs::exists(path, ignored)) {
    if (remote.md5.empty() || has_checksum(path, remote.md5)) return;
    fs::remove(path, ignored);
  }
  fs::path part = path;
  part += ".part";
  const bool resumed = fs::exists(part, ignored);
  const long code = transfer_once(remote, path, part, progress);
  const bool whole = fs::exists(part, ignored);
  // What was there is all there is, or belongs to another file, or cannot be continued.
  const bool doubtful = resumed && (code == kRangeRefused || code == kOk) && whole &&
                        (remote.md5.empty() || !has_checksum(part, remote.md5));
  if (doubtful) {
    fs::remove(part, ignored);
    (void)transfer_once(remote, path, part, progress);
  }
  if (!fs::exists(part, ignored)) {
    // An empty answer writes nothing.
    fail("{}: the server sent nothing. {}", remote.url, by_hand(remote, path));
  }
  if (!remote.md5.empty()) {
    const std::string found = digest_of_file(DigestKind::md5, part);
    if (found != remote.md5) {
      fs::remove(part, ignored);
      fail("{}: its MD5 checksum is {}, not {}: the file was damaged or changed, and is removed",
           remote.url, found, remote.md5);
    }
  }
  fs::rename(part, path);
}

}  // namespace ridgeline
