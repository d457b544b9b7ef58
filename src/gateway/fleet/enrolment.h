#pragma once

#include <chrono>
#include <expected>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "gateway/fleet/authorized_keys_file.h"
#include "gateway/fleet/fleet.h"

namespace hive::store {
class Connection;
class Database;
}  // namespace hive::store

namespace hive::fleet {

/// A fresh join token. Shown once: the gateway keeps only its digest.
struct MintedToken {
  std::string token;  ///< 64 hexadecimal digits
  WallTime expires_at;
};

/// What an agent's future machine sends to be enrolled.
struct EnrolmentRequest {
  std::string token;
  std::string agent;
  std::string public_key;  ///< "ssh-ed25519 AAAA... comment"; options and comment do not count
};

/// Why nobody was enrolled.
struct EnrolmentRefusal {
  enum class Kind {
    agent_id,  ///< breaks the grammar
    token,     ///< not one that admits this agent now; the peer must not learn more
    key,       ///< not a usable Ed25519 key; the token stays good
    conflict,  ///< the key is another agent's, or has expired; the token stays good
    failure,   ///< of the store or the file; the token stays good
  };
  Kind kind = Kind::failure;
  std::string reason;   ///< a short code for the audit log: "token_unknown", "token_used", "token_expired", ...
  std::string message;  ///< one line; for kind token what everybody may hear
};

struct Enrolled {
  std::string fingerprint;
  bool repeated = false;  ///< the answer to the first request was lost, and this is the same one again
};

struct Revoked {
  std::size_t keys_removed = 0;
  std::size_t sessions_ended = 0;
  std::size_t join_tokens_revoked = 0;
};

struct AddedKey {
  std::string fingerprint;
  bool added = false;  ///< false: it stood there already
};

/// Makes agents known and unknown: join tokens, keys in the authorized_keys file, and the sessions that end with a key.
///
/// Everything runs on the store's thread, one request after another, and so do the callbacks, which must not block. So
/// what a token is used for is on disk before the key is, a revocation sees every enrolment before it, and no worker
/// waits for a disk.
class Enrolment {
 public:
  static constexpr std::size_t max_open_tokens = 1000;
  static constexpr std::size_t max_open_tokens_per_agent = 20;
  static constexpr std::chrono::seconds max_token_ttl{24 * 3600};

  template <class T>
  using Done = std::move_only_function<void(T)>;

  /// All must outlive this; the database runs nothing any more when it is closed.
  Enrolment(store::Database& database, AuthorizedKeysFile& keys, Fleet& fleet, const Clock& clock)
      : database_(database), keys_(keys), fleet_(fleet), clock_(clock) {}

  /// Completes what a crash interrupted, and returns the agents that were enrolled by it. For the start; waits.
  Result<std::vector<std::string>> recover();

  /// A token with which one key of `agent` can be enrolled, within `ttl`. Fails with resource_exhausted when too many
  /// tokens are open.
  void mint(std::string agent, std::string created_by, std::chrono::seconds ttl, Done<Result<MintedToken>> done);

  /// Uses a token. A wrong agent or a bad key does not use it up; the same token with the same key again succeeds while
  /// the token lasts, since the first answer may have been lost.
  void redeem(EnrolmentRequest request, Done<std::expected<Enrolled, EnrolmentRefusal>> done);

  /// Removes the keys of an agent and kills its join tokens; or removes one of its keys, by fingerprint. Ends the
  /// sessions that stand on what was removed.
  void revoke(std::string agent, std::optional<std::string> fingerprint, Done<Result<Revoked>> done);

  void add_key(std::string agent, std::string public_key, Done<Result<AddedKey>> done);
  void list_keys(Done<Result<KeyListing>> done);

 private:
  Result<MintedToken> mint_now(store::Connection& connection, const std::string& agent, const std::string& created_by,
                               std::chrono::seconds ttl);
  std::expected<Enrolled, EnrolmentRefusal> redeem_now(store::Connection& connection, const EnrolmentRequest& request);
  Result<Revoked> revoke_now(store::Connection& connection, const std::string& agent,
                             const std::optional<std::string>& fingerprint);
  Result<AddedKey> add_key_now(const std::string& agent, const std::string& public_key);
  Result<std::vector<std::string>> recover_now(store::Connection& connection);

  store::Database& database_;
  AuthorizedKeysFile& keys_;
  Fleet& fleet_;
  const Clock& clock_;
};

}  // namespace hive::fleet
