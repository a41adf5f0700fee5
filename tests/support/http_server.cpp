#include "support/http_server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <stdexcept>

namespace ridgeline::testing {

HttpServer::HttpServer() {
  socket_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  auto* general = reinterpret_cast<sockaddr*>(&address);
  socklen_t length = sizeof(address);
  if (bind(socket_, general, length) != 0 || listen(socket_, 8) != 0 ||
      getsockname(socket_, general, &length) != 0) {
    throw std::runtime_error("the test server could not start");
  }
  port_ = ntohs(address.sin_port);
  thread_ = std::jthread([this] {
    for (;;) {
      const int connection = accept(socket_, nullptr, nullptr);
      if (stopping_ || connection < 0) return;
      answer(connection);
      close(connection);
    }
  });
}

HttpServer::~HttpServer() {
  stopping_ = true;
  shutdown(socket_, SHUT_RDWR);
  thread_.join();
  close(socket_);
}

std::string HttpServer::address() const {
  return "http://127.0.0.1:" + std::to_string(port_) + "/";
}

void HttpServer::serve(const std::string& path, Bytes bytes) {
  const std::scoped_lock lock(mutex_);
  files_[path] = std::move(bytes);
}

std::vector<std::int64_t> HttpServer::requests() const {
  const std::scoped_lock lock(mutex_);
  return requests_;
}

void HttpServer::answer(int connection) {
  std::string request;
  char buffer[4096];
  while (request.find("\r\n\r\n") == std::string::npos) {
    const ssize_t got = recv(connection, buffer, sizeof(buffer), 0);
    if (got <= 0) return;
    request.append(buffer, static_cast<std::size_t>(got));
  }
  const std::size_t start = request.find('/') + 1;
  const std::string path = request.substr(start, request.find(' ', start) - start);
  std::int64_t first = 0;
  const std::size_t range = request.find("Range: bytes=");
  if (range != std::string::npos) first = std::stoll(request.substr(range + 13));
  std::string head;
  Bytes body;
  {
    const std::scoped_lock lock(mutex_);
    requests_.push_back(first);
    const auto file = files_.find(path);
    if (file == files_.end()) {
      head = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
    } else {
      body = file->second;
    }
  }
  if (head.empty()) {
    const auto size = static_cast<std::int64_t>(body.size());
    if (!ranges_) first = 0;
    if (first > 0 && first >= size) {
      head = "HTTP/1.1 416 Range Not Satisfiable\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
      body.clear();
    } else {
      head = first > 0
                 ? "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes " + std::to_string(first) +
                       "-" + std::to_string(size - 1) + "/" + std::to_string(size) + "\r\n"
                 : "HTTP/1.1 200 OK\r\n";
      head += "Content-Length: " + std::to_string(size - first) + "\r\nConnection: close\r\n\r\n";
      body.erase(body.begin(), body.begin() + first);
    }
  }
  const std::int64_t cut = break_after_;
  if (cut >= 0) body.resize(std::min(body.size(), static_cast<std::size_t>(cut)));
  (void)send(connection, head.data(), head.size(), MSG_NOSIGNAL);
  std::size_t sent = 0;
  while (sent < body.size()) {
    const ssize_t count = send(connection, body.data() + sent, body.size() - sent, MSG_NOSIGNAL);
    if (count <= 0) return;
    sent += static_cast<std::size_t>(count);
  }
}

}  // namespace ridgeline::testing
