#include "gateway/store/database.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include "base/strings.h"
#include "gateway/store/schema.h"

namespace hive::store {

namespace {

// Another process that has the file open is refused at the start, so nobody is ever waited for long.
constexpr int busy_timeout_ms = 250;

ErrorCode code_of(int result) {
  switch (result & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return ErrorCode::unavailable;
    case SQLITE_FULL:
      return ErrorCode::resource_exhausted;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return ErrorCode::corrupt;
    case SQLITE_CONSTRAINT:
      return ErrorCode::already_exists;
    case SQLITE_MISUSE:
    case SQLITE_ERROR:
    case SQLITE_RANGE:
      return ErrorCode::internal;
    default:
      return ErrorCode::io;
  }
}

}  // namespace

Statement::Statement(Statement&& other) noexcept : statement_(std::exchange(other.statement_, nullptr)) {}

Statement& Statement::operator=(Statement&& other) noexcept {
  std::swap(statement_, other.statement_);
  return *this;
}

Statement::~Statement() {
  sqlite3_finalize(statement_);
}

// A parameter that cannot be bound stays NULL, and step() fails on the columns' constraints or finds nothing; the only
// ways to fail here are a wrong index and a lack of memory.
Statement& Statement::bind(int index, std::string_view text) {
  sqlite3_bind_text64(statement_, index + 1, text.data() == nullptr ? "" : text.data(), text.size(), SQLITE_TRANSIENT,
                      SQLITE_UTF8);
  return *this;
}

Statement& Statement::bind(int index, std::int64_t number) {
  sqlite3_bind_int64(statement_, index + 1, number);
  return *this;
}

Statement& Statement::bind_blob(int index, std::string_view bytes) {
  sqlite3_bind_blob64(statement_, index + 1, bytes.data() == nullptr ? "" : bytes.data(), bytes.size(),
                      SQLITE_TRANSIENT);
  return *this;
}

Statement& Statement::bind_null(int index) {
  sqlite3_bind_null(statement_, index + 1);
  return *this;
}

Result<bool> Statement::step() {
  int result = sqlite3_step(statement_);
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) {
    sqlite3_reset(statement_);
    return false;
  }
  Error error{code_of(result), fmt::format("the database says: {}", sqlite3_errmsg(sqlite3_db_handle(statement_)))};
  sqlite3_reset(statement_);
  return std::unexpected(std::move(error));
}

Result<void> Statement::run() {
  while (TRY(step())) {
  }
  return {};
}

std::string Statement::text(int column) const {
  const void* bytes = sqlite3_column_blob(statement_, column);
  int size = sqlite3_column_bytes(statement_, column);
  return bytes == nullptr ? std::string() : std::string(static_cast<const char*>(bytes), static_cast<size_t>(size));
}

std::int64_t Statement::number(int column) const {
  return sqlite3_column_int64(statement_, column);
}

bool Statement::is_null(int column) const {
  return sqlite3_column_type(statement_, column) == SQLITE_NULL;
}

Error Connection::error() const {
  int code = handle_ == nullptr ? SQLITE_NOMEM : sqlite3_extended_errcode(handle_);
  std::string_view message = handle_ == nullptr ? "out of memory" : sqlite3_errmsg(handle_);
  if ((code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED) {
    return {ErrorCode::unavailable, fmt::format("{}: another process has the database open", path_)};
  }
  return {code_of(code), fmt::format("{}: {}", path_, message)};
}

Result<Statement> Connection::prepare(std::string_view sql) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v2(handle_, sql.data(), static_cast<int>(sql.size()), &statement, nullptr) != SQLITE_OK) {
    return std::unexpected(error());
  }
  return Statement(statement);
}

Result<void> Connection::execute(std::string_view sql) {
  std::string text(sql);
  if (sqlite3_exec(handle_, text.c_str(), nullptr, nullptr, nullptr) != SQLITE_OK) return std::unexpected(error());
  return {};
}

Result<void> Connection::transaction(const std::function<Result<void>(Connection&)>& work) {
  TRY(execute("BEGIN IMMEDIATE"));
  Result<void> done = work(*this);
  if (done) done = execute("COMMIT");
  if (done) return {};
  // After some failures SQLite has rolled back by itself.
  if (sqlite3_get_autocommit(handle_) == 0) {
    if (Result<void> undone = execute("ROLLBACK"); !undone) return undone;
  }
  return done;
}

std::int64_t Connection::changes() const {
  return sqlite3_changes64(handle_);
}

struct Database::State {
  explicit State(std::string path) : connection(std::move(path)) {}

  Connection connection;
  std::mutex mutex;
  std::condition_variable arrived;
  std::deque<std::move_only_function<void(Connection&)>> tasks;  // guarded by mutex
  bool closing = false;                                          // guarded by mutex
  std::thread thread;

  void serve() {
    for (;;) {
      std::move_only_function<void(Connection&)> task;
      {
        std::unique_lock lock(mutex);
        arrived.wait(lock, [this] { return closing || !tasks.empty(); });
        if (tasks.empty()) return;
        task = std::move(tasks.front());
        tasks.pop_front();
      }
      task(connection);
    }
  }
};

Database::Database(std::unique_ptr<State> state) : state_(std::move(state)) {}

Result<std::unique_ptr<Database>> Database::open(const std::string& path) {
  // SQLite would make the file with the process's umask.
  int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return std::unexpected(system_error(errno, path));
  ::close(fd);

  auto state = std::make_unique<State>(path);
  Connection& connection = state->connection;
  std::unique_ptr<Database> database(new Database(std::move(state)));
  constexpr int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW | SQLITE_OPEN_EXRESCODE;
  if (sqlite3_open_v2(path.c_str(), &connection.handle_, flags, nullptr) != SQLITE_OK) {
    return std::unexpected(connection.error());
  }
  sqlite3_busy_timeout(connection.handle_, busy_timeout_ms);
  for (int option : {SQLITE_DBCONFIG_DEFENSIVE, SQLITE_DBCONFIG_ENABLE_FKEY})
    sqlite3_db_config(connection.handle_, option, 1, nullptr);
  sqlite3_db_config(connection.handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  // Exclusive before WAL: no shared memory file, and a second gateway on the same state is told so at its start.
  for (std::string_view setting : {"PRAGMA locking_mode = EXCLUSIVE", "PRAGMA journal_mode = WAL",
                                   "PRAGMA synchronous = FULL", "PRAGMA secure_delete = ON"})
    TRY(connection.execute(setting));
  {
    Statement check = TRY(connection.prepare("PRAGMA quick_check(1)"));
    bool found = TRY_CONTEXT(path, check.step());
    if (found && check.text(0) != "ok") {
      return fail(ErrorCode::corrupt, "{}: the database is damaged: {}", path, check.text(0));
    }
  }
  TRY_CONTEXT(path, migrate(connection));
  database->state_->thread = std::thread([state = database->state_.get()] { state->serve(); });
  return database;
}

Database::~Database() {
  if (state_->thread.joinable()) {
    {
      std::lock_guard lock(state_->mutex);
      state_->closing = true;
    }
    state_->arrived.notify_one();
    state_->thread.join();
  }
  sqlite3_close_v2(state_->connection.handle_);
}

void Database::post(std::move_only_function<void(Connection&)> task) {
  {
    std::lock_guard lock(state_->mutex);
    state_->tasks.push_back(std::move(task));
  }
  state_->arrived.notify_one();
}

void Database::run(const std::function<void(Connection&)>& task) {
  std::mutex mutex;
  std::condition_variable done;
  bool finished = false;
  post([&](Connection& connection) {
    task(connection);
    std::lock_guard lock(mutex);
    finished = true;
    done.notify_one();
  });
  std::unique_lock lock(mutex);
  done.wait(lock, [&] { return finished; });
}

}  // namespace hive::store
