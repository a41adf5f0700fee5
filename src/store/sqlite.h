#pragma once

// SQLite behind one checked wrapper: every status that is not success becomes an Error that names
// the file and tells what to do about it.

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

struct sqlite3;
struct sqlite3_stmt;

namespace ridgeline::sqlite {

class Connection;

// Parameters count from 1, columns from 0, as in SQLite.
class Statement {
 public:
  Statement(Connection& connection, const std::string& sql);
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  void bind(int parameter, std::int64_t value);
  void bind(int parameter, double value);  // not a number becomes NULL
  // The text must stay until the statement has run; empty becomes NULL.
  void bind(int parameter, std::string_view value);
  void bind_copy(int parameter, std::string_view value);  // of a text that may go away
  void bind_null(int parameter);
  // All parameters in their order, of a statement that begins anew.
  template <typename... Values>
  Statement& with(const Values&... values) {
    reset();
    int parameter = 0;
    (bind(++parameter, values), ...);
    return *this;
  }

  // True: a row is there. At the end, and after an error, the statement is ready to run again.
  bool step();
  void run();  // a statement that gives no rows

  [[nodiscard]] bool is_null(int column) const;
  [[nodiscard]] std::int64_t integer(int column) const;
  [[nodiscard]] double real(int column) const;  // NULL is not a number
  [[nodiscard]] std::string text(int column) const;
  void reset();
  [[nodiscard]] const std::string& file() const;

 private:
  Connection* connection_;
  sqlite3_stmt* statement_ = nullptr;
};

// `read` changes no row; on closing it may move rows that a writer has left in its log to their
// place, as every connection does that closes last.
enum class Access { read, write, write_or_create };

class Connection {
 public:
  Connection(const std::filesystem::path& path, Access access);
  // A copy of the other's contents in memory.
  static std::unique_ptr<Connection> in_memory_copy(Connection& other);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  void execute(const std::string& sql);  // any number of statements
  // Compiled once and kept.
  [[nodiscard]] Statement& prepared(const std::string& sql);
  [[nodiscard]] std::int64_t number(const std::string& sql);  // the first column of the first row
  [[nodiscard]] std::string word(const std::string& sql);
  [[nodiscard]] std::int64_t last_row() const;
  [[nodiscard]] std::int64_t changes() const;  // of the last statement
  // Write-ahead logging: readers and one writer at a time do not wait for each other. Where the
  // file system cannot do it the file keeps its journal.
  void use_write_ahead_log();
  void roll_back() noexcept;
  [[nodiscard]] const std::string& name() const { return name_; }

  // Throws what the code means.
  [[noreturn]] void raise(int code) const;

 private:
  friend class Statement;
  Connection() = default;
  void open(const std::string& uri, int flags);
  void close() noexcept;
  [[nodiscard]] bool writable() const;  // the file and its folder, by us

  std::string name_, uri_;
  std::string log_;  // the write-ahead log's file; empty: none is ours to remove
  sqlite3* handle_ = nullptr;
  std::map<std::string, std::unique_ptr<Statement>> statements_;
};

// Everything until commit(), or nothing of it. A writing one waits for other writers first.
class Transaction {
 public:
  enum class Kind { reading, writing };
  explicit Transaction(Connection& connection, Kind kind = Kind::writing);
  Transaction(const Transaction&) = delete;
  Transaction& operator=(const Transaction&) = delete;
  ~Transaction();
  void commit();

 private:
  Connection* connection_;
};

}  // namespace ridgeline::sqlite
