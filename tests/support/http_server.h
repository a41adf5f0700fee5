#pragma once

// A small HTTP server on a port of its own, for the tests of downloads.

#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "support/data_files.h"

namespace ridgeline::testing {

class HttpServer {
 public:
  HttpServer();
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  void serve(const std::string& path, Bytes bytes);
  // The connection breaks after so many bytes of a body; -1: never.
  void break_after(std::int64_t bytes) { break_after_ = bytes; }
  // Without ranges every answer is the whole file.
  void allow_ranges(bool allowed) { ranges_ = allowed; }

  [[nodiscard]] std::string address() const;
  // The first byte that each request asked for.
  [[nodiscard]] std::vector<std::int64_t> requests() const;

 private:
  void answer(int connection);

  int socket_ = -1, port_ = 0;
  std::atomic<std::int64_t> break_after_ = -1;
  std::atomic<bool> ranges_ = true, stopping_ = false;
  mutable std::mutex mutex_;
  std::map<std::string, Bytes> files_;
  std::vector<std::int64_t> requests_;
  std::jthread thread_;
};

}  // namespace ridgeline::testing
