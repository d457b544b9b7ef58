#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

struct sqlite3;
struct sqlite3_stmt;

namespace hive::store {

/// A prepared statement. Parameters and columns count from 0. On the store's thread only.
class Statement {
 public:
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&& other) noexcept;
  ~Statement();

  Statement& bind(int index, std::string_view text);
  Statement& bind(int index, std::int64_t number);
  Statement& bind_blob(int index, std::string_view bytes);
  Statement& bind_null(int index);
  Statement& bind(int index, std::optional<std::int64_t> number) {
    return number ? bind(index, *number) : bind_null(index);
  }
  /// nullopt as NULL.
  Statement& bind_optional(int index, const std::optional<std::string>& text) {
    return text ? bind(index, std::string_view(*text)) : bind_null(index);
  }

  /// The next row: true if there is one. After false or an error the statement can be bound and stepped again.
  Result<bool> step();
  /// For statements without rows.
  Result<void> run();

  [[nodiscard]] std::string text(int column) const;  ///< also of blobs; empty for NULL
  [[nodiscard]] std::int64_t number(int column) const;
  [[nodiscard]] bool is_null(int column) const;

 private:
  friend class Connection;
  explicit Statement(sqlite3_stmt* statement) : statement_(statement) {}
  sqlite3_stmt* statement_ = nullptr;
};

/// The open database. On the store's thread only.
class Connection {
 public:
  Result<Statement> prepare(std::string_view sql);
  Result<void> execute(std::string_view sql);
  /// Runs `work` in a transaction: durable when it succeeds, without effect when it fails.
  Result<void> transaction(const std::function<Result<void>(Connection&)>& work);
  /// Rows that the last statement changed.
  [[nodiscard]] std::int64_t changes() const;

 private:
  friend class Database;
  explicit Connection(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] Error error() const;
  std::string path_;
  sqlite3* handle_ = nullptr;
};

/// The gateway's SQLite file, with a thread of its own on which everything that touches it runs, one after another
/// (DESIGN section 8). What a transaction wrote survives kill -9 and a power cut.
class Database {
 public:
  /// Opens or creates the file, readable by its owner alone, and brings its tables up to date. Refuses a file that is
  /// damaged, that a newer version made, or that another process has open.
  static Result<std::unique_ptr<Database>> open(const std::string& path);
  /// Runs what was posted, then closes.
  ~Database();
  Database(const Database&) = delete;
  Database& operator=(const Database&) = delete;

  /// Runs `task` on the store's thread, after what was posted before. Thread-safe.
  void post(std::move_only_function<void(Connection&)> task);
  /// Runs `task` there and waits for it. Not from the store's thread.
  void run(const std::function<void(Connection&)>& task);

 private:
  struct State;
  explicit Database(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hive::store
