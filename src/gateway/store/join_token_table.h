#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"

namespace hive::store {

class Connection;

/// A join token: permission to enrol one key for one agent. Only its digest is kept.
struct JoinToken {
  std::string digest;  ///< SHA-256 of the token, hexadecimal
  std::string agent;
  std::string created_by;  ///< principal
  WallTime created_at;
  WallTime expires_at;
  std::optional<WallTime> used_at;        ///< when its key was in the file
  std::optional<std::string> public_key;  ///< with which it is or will be used; without used_at: on its way to the file
};

/// The table of join tokens. On the store's thread.
class JoinTokenTable {
 public:
  explicit JoinTokenTable(Connection& connection) : connection_(connection) {}

  Result<void> insert(const JoinToken& token);
  Result<std::optional<JoinToken>> find(std::string_view digest);
  /// Tokens that can still be used: of one agent, or of all for an empty id.
  Result<std::size_t> count_open(std::string_view agent, WallTime now);

  /// Notes durably with which key the token is used, before the key is written to the file.
  Result<void> claim(std::string_view digest, std::string_view public_key);
  /// The key is in the file.
  Result<void> finish(std::string_view digest, WallTime now);
  /// The key could not be written: the token can be used again.
  Result<void> release(std::string_view digest);
  /// Claimed and neither finished nor released: the gateway died in between.
  Result<std::vector<JoinToken>> interrupted();

  /// Removes all tokens of an agent, used ones too; returns how many of them could still be used.
  Result<std::size_t> remove_agent(std::string_view agent, WallTime now);
  /// Forgets what has expired.
  Result<void> sweep(WallTime now);

 private:
  Connection& connection_;
};

}  // namespace hive::store
