#include "gateway/fleet/enrolment.h"

#include <algorithm>

#include "base/log.h"
#include "base/strings.h"
#include "crypto/random.h"
#include "crypto/sha256.h"
#include "gateway/fleet/session_watch.h"
#include "gateway/store/database.h"
#include "gateway/store/join_token_table.h"

namespace hive::fleet {

namespace {

using Kind = EnrolmentRefusal::Kind;

constexpr std::size_t token_bytes = 32;
constexpr std::size_t max_key_bytes = 16384;

std::string digest_of(std::string_view token) {
  return to_hex(crypto::sha256(token));
}

bool is_token(std::string_view text) {
  return text.size() == 2 * token_bytes &&
         std::ranges::all_of(text, [](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
}

Result<crypto::PublicKey> parse_key(std::string_view text) {
  text = trim(text);
  if (text.size() > max_key_bytes) {
    return fail(ErrorCode::invalid_argument, "public_key: longer than {} bytes", max_key_bytes);
  }
  if (text.find_first_of("\r\n") != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "public_key: more than one line; send one key");
  }
  crypto::PublicKey key = TRY_CONTEXT("public_key", crypto::PublicKey::from_line(text));
  if (!key.is_ed25519()) {
    return fail(ErrorCode::invalid_argument,
                "public_key: key type {} is not accepted; make an Ed25519 key: ssh-keygen -t ed25519",
                quote(key.type()));
  }
  return key;
}

// All that the peer hears, whatever is wrong with the token: it must not find out which tokens exist.
EnrolmentRefusal bad_token(std::string reason) {
  return {Kind::token, std::move(reason),
          "the join token does not admit this agent: it is unknown, used, expired or for another agent; ask for a new "
          "one"};
}

EnrolmentRefusal failure(const Error& error) {
  log::error("an enrolment failed", {{"reason", error.message}});
  return {Kind::failure, "enrolment_failed", "the gateway could not store the key; its log says why"};
}

}  // namespace

Result<std::vector<std::string>> Enrolment::recover() {
  Result<std::vector<std::string>> result;
  database_.run([&](store::Connection& connection) { result = recover_now(connection); });
  return result;
}

Result<std::vector<std::string>> Enrolment::recover_now(store::Connection& connection) {
  store::JoinTokenTable table(connection);
  std::vector<std::string> agents;
  for (const store::JoinToken& token : TRY(table.interrupted())) {
    crypto::PublicKey key = TRY(crypto::PublicKey::from_line(*token.public_key));
    Result<KeyAddition> added = keys_.add_key(token.agent, key);
    // Somebody else has the key by now; the peer was never told that it is enrolled.
    if (!added && added.error().code == ErrorCode::already_exists) {
      TRY(table.release(token.digest));
      continue;
    }
    if (!added) return std::unexpected(added.error());
    TRY(table.finish(token.digest, clock_.wall_now()));
    // Also for a key that was there already: the gateway was killed before it told of it.
    agents.push_back(token.agent);
  }
  TRY(table.sweep(clock_.wall_now()));
  return agents;
}

void Enrolment::mint(std::string agent, std::string created_by, std::chrono::seconds ttl,
                     Done<Result<MintedToken>> done) {
  database_.post([this, agent = std::move(agent), created_by = std::move(created_by), ttl, done = std::move(done)](
                     store::Connection& connection) mutable { done(mint_now(connection, agent, created_by, ttl)); });
}

Result<MintedToken> Enrolment::mint_now(store::Connection& connection, const std::string& agent,
                                        const std::string& created_by, std::chrono::seconds ttl) {
  TRY(check_agent_id(agent));
  if (ttl < std::chrono::seconds(1) || ttl > max_token_ttl) {
    return fail(ErrorCode::invalid_argument, "a join token lives from 1 to {} seconds", max_token_ttl.count());
  }
  store::JoinTokenTable table(connection);
  WallTime now = clock_.wall_now();
  TRY(table.sweep(now));
  if (TRY(table.count_open(agent, now)) >= max_open_tokens_per_agent) {
    return fail(ErrorCode::resource_exhausted,
                "agent {} has {} open join tokens; use one, wait until they expire, or revoke the agent", agent,
                max_open_tokens_per_agent);
  }
  if (TRY(table.count_open({}, now)) >= max_open_tokens) {
    return fail(ErrorCode::resource_exhausted, "there are {} open join tokens; wait until some expire",
                max_open_tokens);
  }
  MintedToken minted{crypto::random_hex(token_bytes), now + ttl};
  store::JoinToken row;
  row.digest = digest_of(minted.token);
  row.agent = agent;
  row.created_by = created_by;
  row.created_at = now;
  row.expires_at = minted.expires_at;
  TRY(table.insert(row));
  return minted;
}

void Enrolment::redeem(EnrolmentRequest request, Done<std::expected<Enrolled, EnrolmentRefusal>> done) {
  database_.post([this, request = std::move(request), done = std::move(done)](store::Connection& connection) mutable {
    done(redeem_now(connection, request));
  });
}

std::expected<Enrolled, EnrolmentRefusal> Enrolment::redeem_now(store::Connection& connection,
                                                                const EnrolmentRequest& request) {
  if (Result<void> checked = check_agent_id(request.agent); !checked) {
    return std::unexpected(EnrolmentRefusal{Kind::agent_id, "invalid_agent_id", checked.error().message});
  }
  if (!is_token(request.token)) return std::unexpected(bad_token("token_unknown"));
  store::JoinTokenTable table(connection);
  // Found by its digest, so that the time this takes says nothing about the tokens that exist.
  Result<std::optional<store::JoinToken>> found = table.find(digest_of(request.token));
  if (!found) return std::unexpected(failure(found.error()));
  if (!*found) return std::unexpected(bad_token("token_unknown"));
  const store::JoinToken& token = **found;
  WallTime now = clock_.wall_now();
  if (token.expires_at <= now) return std::unexpected(bad_token("token_expired"));
  if (token.agent != request.agent) return std::unexpected(bad_token("token_of_another_agent"));

  Result<crypto::PublicKey> key = parse_key(request.public_key);
  // A used token must not tell whether a key is a good one.
  if (token.used_at && !key) return std::unexpected(bad_token("token_used"));
  if (!key) return std::unexpected(EnrolmentRefusal{Kind::key, "invalid_key", key.error().message});
  std::string line = crypto::PublicKey::from_ed25519(key->ed25519(), request.agent).to_line();
  if (token.used_at) {
    bool is_same = token.public_key && *token.public_key == line;
    if (!is_same) return std::unexpected(bad_token("token_used"));
    return Enrolled{key->fingerprint(), true};
  }

  if (Result<void> claimed = table.claim(token.digest, line); !claimed) {
    return std::unexpected(failure(claimed.error()));
  }
  if (Result<KeyAddition> added = keys_.add_key(request.agent, *key); !added) {
    if (Result<void> released = table.release(token.digest); !released) (void)failure(released.error());
    if (added.error().code != ErrorCode::already_exists) return std::unexpected(failure(added.error()));
    return std::unexpected(EnrolmentRefusal{Kind::conflict, "key_conflict", added.error().message});
  }
  // The key counts from here on. If this fails, the next start finishes it.
  if (Result<void> finished = table.finish(token.digest, now); !finished) (void)failure(finished.error());
  return Enrolled{key->fingerprint(), false};
}

void Enrolment::revoke(std::string agent, std::optional<std::string> fingerprint, Done<Result<Revoked>> done) {
  database_.post([this, agent = std::move(agent), fingerprint = std::move(fingerprint), done = std::move(done)](
                     store::Connection& connection) mutable { done(revoke_now(connection, agent, fingerprint)); });
}

Result<Revoked> Enrolment::revoke_now(store::Connection& connection, const std::string& agent,
                                      const std::optional<std::string>& fingerprint) {
  Revoked revoked;
  // The tokens first: with one of them the agent could come back between the two steps, were there a crash.
  Result<std::size_t> tokens = std::size_t{0};
  if (!fingerprint) tokens = store::JoinTokenTable(connection).remove_agent(agent, clock_.wall_now());
  Result<std::size_t> keys = fingerprint ? keys_.remove_key(agent, *fingerprint) : keys_.remove_agent(agent);
  // Whatever failed: what is gone from the file must not go on.
  std::vector<std::string> ended = end_unauthorized_sessions(fleet_, keys_);
  revoked.sessions_ended = static_cast<std::size_t>(std::ranges::count(ended, agent));
  revoked.join_tokens_revoked = TRY_CONTEXT("the agent's keys are removed, but not its join tokens", std::move(tokens));
  revoked.keys_removed = TRY_CONTEXT("no key is removed", std::move(keys));
  if (!std::ranges::binary_search(*keys_.agents(), agent)) fleet_.forget(agent);
  return revoked;
}

void Enrolment::add_key(std::string agent, std::string public_key, Done<Result<AddedKey>> done) {
  database_.post([this, agent = std::move(agent), public_key = std::move(public_key),
                  done = std::move(done)](store::Connection&) mutable { done(add_key_now(agent, public_key)); });
}

Result<AddedKey> Enrolment::add_key_now(const std::string& agent, const std::string& public_key) {
  TRY_CONTEXT("agent_id", check_agent_id(agent));
  crypto::PublicKey key = TRY(parse_key(public_key));
  KeyAddition addition = TRY(keys_.add_key(agent, key));
  return AddedKey{key.fingerprint(), addition == KeyAddition::added};
}

void Enrolment::list_keys(Done<Result<KeyListing>> done) {
  database_.post([this, done = std::move(done)](store::Connection&) mutable { done(keys_.list()); });
}

}  // namespace hive::fleet
