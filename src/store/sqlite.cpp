#include "store/sqlite.h"

#include <sqlite3.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <thread>
#include <utility>

#include "base/error.h"

namespace ridgeline::sqlite {
namespace {

namespace fs = std::filesystem;

constexpr int kPatienceSeconds = 30;  // for other writers

// A path as SQLite's URI wants it.
std::string uri_of(const fs::path& path, std::string_view query) {
  std::string uri = "file:";
  for (const char c : path.string()) {
    if (c == '?' || c == '#' || c == '%') {
      uri += fmt::format("%{:02X}", static_cast<int>(c));
    } else {
      uri += c;
    }
  }
  return uri + std::string(query);
}

bool has_log(const fs::path& path) {
  std::error_code missing;
  const auto bytes = fs::file_size(path.string() + "-wal", missing);
  return !missing && bytes > 0;
}

}  // namespace

Statement::Statement(Connection& connection, const std::string& sql) : connection_(&connection) {
  const int code = sqlite3_prepare_v3(connection.handle_, sql.c_str(), -1,
                                      SQLITE_PREPARE_PERSISTENT, &statement_, nullptr);
  if (code != SQLITE_OK) connection.raise(code);
}

Statement::Statement(Statement&& other) noexcept
    : connection_(other.connection_), statement_(std::exchange(other.statement_, nullptr)) {}

Statement::~Statement() { sqlite3_finalize(statement_); }

void Statement::bind(int parameter, std::int64_t value) {
  const int code = sqlite3_bind_int64(statement_, parameter, value);
  if (code != SQLITE_OK) connection_->raise(code);
}

void Statement::bind(int parameter, double value) {
  if (std::isnan(value)) return bind_null(parameter);
  const int code = sqlite3_bind_double(statement_, parameter, value);
  if (code != SQLITE_OK) connection_->raise(code);
}

void Statement::bind(int parameter, std::string_view value) {
  if (value.empty()) return bind_null(parameter);
  const int code = sqlite3_bind_text64(statement_, parameter, value.data(), value.size(),
                                       SQLITE_STATIC, SQLITE_UTF8);
  if (code != SQLITE_OK) connection_->raise(code);
}

void Statement::bind_copy(int parameter, std::string_view value) {
  if (value.empty()) return bind_null(parameter);
  const int code = sqlite3_bind_text64(statement_, parameter, value.data(), value.size(),
                                       SQLITE_TRANSIENT, SQLITE_UTF8);
  if (code != SQLITE_OK) connection_->raise(code);
}

void Statement::bind_null(int parameter) {
  const int code = sqlite3_bind_null(statement_, parameter);
  if (code != SQLITE_OK) connection_->raise(code);
}

bool Statement::step() {
  const int code = sqlite3_step(statement_);
  if (code == SQLITE_ROW) return true;
  reset();
  if (code != SQLITE_DONE) connection_->raise(code);
  return false;
}

void Statement::run() {
  while (step()) {
  }
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

std::int64_t Statement::integer(int column) const {
  return sqlite3_column_int64(statement_, column);
}

double Statement::real(int column) const {
  return is_null(column) ? std::numeric_limits<double>::quiet_NaN()
                         : sqlite3_column_double(statement_, column);
}

std::string Statement::text(int column) const {
  const auto* letters = reinterpret_cast<const char*>(sqlite3_column_text(statement_, column));
  if (letters == nullptr) return {};
  return {letters, static_cast<std::size_t>(sqlite3_column_bytes(statement_, column))};
}

void Statement::reset() { (void)sqlite3_reset(statement_); }

const std::string& Statement::file() const { return connection_->name(); }

Connection::Connection(const fs::path& path, Access access)
    : name_(path.string()), uri_(uri_of(path, "")), log_(name_ + "-wal") {
  // Readers open for writing too, where they may: the last one to close it then merges the log and
  // removes it; no other one can.
  const int flags = access == Access::write_or_create ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
                                                      : SQLITE_OPEN_READWRITE;
  open(uri_, flags);
  try {
    // SQLite turns to reading whatever the trouble was, and so does not tell it. One that has
    // passed is worth a second try.
    if (sqlite3_db_readonly(handle_, "main") == 1 && access != Access::read &&
        ::access(name_.c_str(), W_OK) == 0) {
      close();
      open(uri_, flags);
    }
    if (access == Access::read) {
      // A log in a folder that we may not write cannot be joined; without a log there is nothing
      // to join, and the file does not change under us.
      const int code =
          sqlite3_exec(handle_, "SELECT 1 FROM sqlite_master LIMIT 1", nullptr, nullptr, nullptr);
      const bool unreachable = (code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY;
      if (unreachable && !has_log(path)) {
        close();
        log_.clear();
        open(uri_of(path, "?immutable=1"), SQLITE_OPEN_READONLY);
      } else if (code != SQLITE_OK) {
        raise(code);
      }
      execute("PRAGMA query_only = ON");
    } else if (sqlite3_db_readonly(handle_, "main") == 1) {
      bad_input("{}: cannot be written: the file or its folder is read-only", name_);
    }
  } catch (...) {
    close();
    throw;
  }
}

std::unique_ptr<Connection> Connection::in_memory_copy(Connection& other) {
  std::unique_ptr<Connection> copy(new Connection);
  copy->name_ = other.name_;
  copy->open("file::memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
  sqlite3_backup* backup = sqlite3_backup_init(copy->handle_, "main", other.handle_, "main");
  if (backup == nullptr) copy->raise(sqlite3_extended_errcode(copy->handle_));
  const int code = sqlite3_backup_step(backup, -1);
  (void)sqlite3_backup_finish(backup);
  if (code != SQLITE_DONE) copy->raise(code);
  return copy;
}

Connection::~Connection() { close(); }

void Connection::open(const std::string& uri, int flags) {
  const auto try_to = [&] {
    return sqlite3_open_v2(uri.c_str(), &handle_, flags | SQLITE_OPEN_URI, nullptr);
  };
  int code = try_to();
  // Where a file that may be made is missing, SQLite has turned to reading: the reason is another.
  if (handle_ != nullptr && code != SQLITE_OK && (flags & SQLITE_OPEN_CREATE) != 0 &&
      sqlite3_system_errno(handle_) == ENOENT) {
    close();
    code = try_to();
  }
  if (handle_ == nullptr) throw std::bad_alloc();
  (void)sqlite3_extended_result_codes(handle_, 1);
  (void)sqlite3_busy_timeout(handle_, kPatienceSeconds * 1000);
  if (code == SQLITE_OK) return;
  const int error = sqlite3_system_errno(handle_);
  close();
  fail("{}: cannot be opened: {}", name_, error != 0 ? std::strerror(error) : sqlite3_errstr(code));
}

void Connection::close() noexcept {
  statements_.clear();
  if (handle_ == nullptr) return;
  (void)sqlite3_close_v2(std::exchange(handle_, nullptr));
  if (log_.empty() || ::access(log_.c_str(), F_OK) != 0) return;
  // Others use the file, or the log could not be moved home: then a second try may do it. Nothing
  // is lost if it does not: the next program to open the file reads the log.
  sqlite3* again = nullptr;
  if (sqlite3_open_v2(uri_.c_str(), &again, SQLITE_OPEN_READWRITE | SQLITE_OPEN_URI, nullptr) ==
      SQLITE_OK) {
    (void)sqlite3_exec(again, "SELECT 1 FROM sqlite_master LIMIT 1", nullptr, nullptr, nullptr);
  }
  (void)sqlite3_close_v2(again);
}

void Connection::roll_back() noexcept {
  (void)sqlite3_exec(handle_, "ROLLBACK", nullptr, nullptr, nullptr);
}

void Connection::execute(const std::string& sql) {
  const int code = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
  if (code != SQLITE_OK) raise(code);
}

Statement& Connection::prepared(const std::string& sql) {
  std::unique_ptr<Statement>& statement = statements_[sql];
  if (statement == nullptr) statement = std::make_unique<Statement>(*this, sql);
  return *statement;
}

std::int64_t Connection::number(const std::string& sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.integer(0) : 0;
}

std::string Connection::word(const std::string& sql) {
  Statement statement(*this, sql);
  return statement.step() ? statement.text(0) : std::string();
}

std::int64_t Connection::last_row() const { return sqlite3_last_insert_rowid(handle_); }

std::int64_t Connection::changes() const { return sqlite3_changes64(handle_); }

void Connection::use_write_ahead_log() {
  if (word("PRAGMA journal_mode") == "wal") return;
  // SQLite does not wait by itself here when others change the mode at the same moment.
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(kPatienceSeconds);
  for (;;) {
    const int code = sqlite3_exec(handle_, "PRAGMA journal_mode = WAL", nullptr, nullptr, nullptr);
    if (code == SQLITE_OK) return;
    if ((code & 0xff) != SQLITE_BUSY || std::chrono::steady_clock::now() > end) raise(code);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

bool Connection::writable() const {
  const fs::path folder = fs::path(name_).parent_path();
  return ::access(name_.c_str(), W_OK) == 0 &&
         ::access(folder.empty() ? "." : folder.c_str(), W_OK) == 0;
}

void Connection::raise(int code) const {
  const std::string words = sqlite3_errmsg(handle_);
  const int error = sqlite3_system_errno(handle_);
  const std::string reason = error != 0 ? std::string(std::strerror(error)) : words;
  switch (code & 0xff) {
    case SQLITE_NOTADB:
      bad_input("{}: is not a store (not an SQLite database)", name_);
    case SQLITE_CORRUPT:
      bad_input(
          "{}: the file is damaged ({}). It was left as it is; sqlite3's .recover may save its "
          "rows, --store names another file",
          name_, words);
    case SQLITE_FULL:
      fail("{}: cannot be written: the disk is full. What was committed before is kept", name_);
    case SQLITE_READONLY:
      if (writable()) {
        fail("{}: its log or its index, {}-wal and {}-shm, cannot be opened", name_, name_, name_);
      }
      bad_input("{}: cannot be written: the file or its folder is read-only", name_);
    case SQLITE_IOERR:
      fail("{}: cannot be read or written: {}. What was committed before is kept", name_, reason);
    case SQLITE_CANTOPEN:
    case SQLITE_PERM:
      // SQLite tries again for reading only, and keeps the reason of that: there is no such log.
      if (error == ENOENT && ::access(name_.c_str(), F_OK) == 0) {
        fail("{}: its log or its index, {}-wal and {}-shm, cannot be opened", name_, name_, name_);
      }
      fail("{}: cannot be opened: {}", name_, reason);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      fail("{}: another program has kept it locked for {} seconds", name_, kPatienceSeconds);
    case SQLITE_NOMEM:
      throw std::bad_alloc();
    default:
      fail("{}: {} (SQLite, code {})", name_, words, code);
  }
}

Transaction::Transaction(Connection& connection, Kind kind) : connection_(&connection) {
  connection.prepared(kind == Kind::writing ? "BEGIN IMMEDIATE" : "BEGIN").run();
}

Transaction::~Transaction() {
  if (connection_ == nullptr) return;
  // After some errors SQLite has rolled back by itself.
  connection_->roll_back();
}

void Transaction::commit() {
  connection_->prepared("COMMIT").run();
  connection_ = nullptr;
}

}  // namespace ridgeline::sqlite
