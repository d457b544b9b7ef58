#include "gateway/store/join_token_table.h"

#include "gateway/store/database.h"

namespace hive::store {

namespace {

constexpr std::string_view columns = "digest, agent, created_by, created_at, expires_at, used_at, public_key";

std::int64_t to_ms(WallTime time) {
  return std::chrono::floor<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

WallTime from_ms(std::int64_t ms) {
  return WallTime(std::chrono::milliseconds(ms));
}

JoinToken read_row(const Statement& row) {
  JoinToken token;
  token.digest = row.text(0);
  token.agent = row.text(1);
  token.created_by = row.text(2);
  token.created_at = from_ms(row.number(3));
  token.expires_at = from_ms(row.number(4));
  if (!row.is_null(5)) token.used_at = from_ms(row.number(5));
  if (!row.is_null(6)) token.public_key = row.text(6);
  return token;
}

}  // namespace

Result<void> JoinTokenTable::insert(const JoinToken& token) {
  Statement statement =
      TRY(connection_.prepare(fmt::format("INSERT INTO join_tokens ({}) VALUES (?, ?, ?, ?, ?, NULL, NULL)", columns)));
  return statement.bind(0, token.digest)
      .bind(1, token.agent)
      .bind(2, token.created_by)
      .bind(3, to_ms(token.created_at))
      .bind(4, to_ms(token.expires_at))
      .run();
}

Result<std::optional<JoinToken>> JoinTokenTable::find(std::string_view digest) {
  Statement query = TRY(connection_.prepare(fmt::format("SELECT {} FROM join_tokens WHERE digest = ?", columns)));
  if (!TRY(query.bind(0, digest).step())) return std::nullopt;
  return read_row(query);
}

Result<std::size_t> JoinTokenTable::count_open(std::string_view agent, WallTime now) {
  Statement query =
      TRY(connection_.prepare("SELECT count(*) FROM join_tokens WHERE used_at IS NULL AND expires_at > ?"
                              " AND (? = '' OR agent = ?)"));
  TRY(query.bind(0, to_ms(now)).bind(1, agent).bind(2, agent).step());
  return static_cast<std::size_t>(query.number(0));
}

Result<void> JoinTokenTable::claim(std::string_view digest, std::string_view public_key) {
  Statement statement =
      TRY(connection_.prepare("UPDATE join_tokens SET public_key = ? WHERE digest = ? AND used_at IS NULL"));
  return statement.bind(0, public_key).bind(1, digest).run();
}

Result<void> JoinTokenTable::finish(std::string_view digest, WallTime now) {
  Statement statement = TRY(connection_.prepare("UPDATE join_tokens SET used_at = ? WHERE digest = ?"));
  return statement.bind(0, to_ms(now)).bind(1, digest).run();
}

Result<void> JoinTokenTable::release(std::string_view digest) {
  Statement statement =
      TRY(connection_.prepare("UPDATE join_tokens SET public_key = NULL WHERE digest = ? AND used_at IS NULL"));
  return statement.bind(0, digest).run();
}

Result<std::vector<JoinToken>> JoinTokenTable::interrupted() {
  Statement query = TRY(connection_.prepare(fmt::format(
      "SELECT {} FROM join_tokens WHERE used_at IS NULL AND public_key IS NOT NULL ORDER BY created_at", columns)));
  std::vector<JoinToken> tokens;
  while (TRY(query.step()))
    tokens.push_back(read_row(query));
  return tokens;
}

Result<std::size_t> JoinTokenTable::remove_agent(std::string_view agent, WallTime now) {
  std::size_t open = TRY(count_open(agent, now));
  Statement statement = TRY(connection_.prepare("DELETE FROM join_tokens WHERE agent = ?"));
  TRY(statement.bind(0, agent).run());
  return open;
}

Result<void> JoinTokenTable::sweep(WallTime now) {
  Statement statement = TRY(connection_.prepare(
      "DELETE FROM join_tokens WHERE expires_at <= ? AND (public_key IS NULL OR used_at IS NOT NULL)"));
  return statement.bind(0, to_ms(now)).run();
}

}  // namespace hive::store
