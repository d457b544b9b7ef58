#include "gateway/store/schema.h"

#include <array>

#include "gateway/store/database.h"

namespace hive::store {

namespace {

// Times are milliseconds since 1970 in UTC. A step that was released is never changed; what comes later is a new one.
constexpr std::array<std::string_view, 4> steps = {
    R"sql(
      CREATE TABLE approvals (
        id TEXT PRIMARY KEY,
        digest TEXT NOT NULL,
        status TEXT NOT NULL,
        principal TEXT NOT NULL,
        identity TEXT NOT NULL,
        role TEXT NOT NULL,
        credential TEXT NOT NULL,
        groups TEXT NOT NULL,
        credential_expires_at INTEGER,
        on_behalf_of TEXT NOT NULL,
        after_untrusted_text INTEGER NOT NULL,
        agent TEXT NOT NULL,
        agent_key TEXT NOT NULL,
        tool TEXT NOT NULL,
        arguments TEXT NOT NULL,
        tier TEXT NOT NULL,
        policy_version TEXT NOT NULL,
        surface TEXT NOT NULL,
        request_id TEXT NOT NULL,
        call_id TEXT NOT NULL,
        timeout_ms INTEGER NOT NULL,
        needed INTEGER NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        ended_at INTEGER,
        outcome TEXT,
        reason TEXT NOT NULL DEFAULT '',
        result_is_error INTEGER,
        result_by_gateway INTEGER,
        result TEXT
      ) STRICT;
      CREATE INDEX approvals_by_end ON approvals (ended_at);
      CREATE TABLE approval_votes (
        approval TEXT NOT NULL REFERENCES approvals (id) ON DELETE CASCADE,
        action TEXT NOT NULL,
        principal TEXT NOT NULL,
        identity TEXT NOT NULL,
        at INTEGER NOT NULL,
        comment TEXT NOT NULL,
        PRIMARY KEY (approval, identity, action)
      ) STRICT;
      CREATE TABLE join_tokens (
        digest TEXT PRIMARY KEY,
        agent TEXT NOT NULL,
        created_by TEXT NOT NULL,
        created_at INTEGER NOT NULL,
        expires_at INTEGER NOT NULL,
        used_at INTEGER,
        public_key TEXT
      ) STRICT;
      CREATE INDEX join_tokens_by_agent ON join_tokens (agent);
    )sql",
    R"sql(
      ALTER TABLE approvals ADD COLUMN target TEXT NOT NULL DEFAULT 'agent';
      ALTER TABLE approvals ADD COLUMN method TEXT NOT NULL DEFAULT '';
    )sql",
    R"sql(
      CREATE TABLE accepted_tools (
        upstream TEXT NOT NULL,
        tool TEXT NOT NULL,
        sha256 TEXT NOT NULL,
        description TEXT NOT NULL,
        accepted_at INTEGER NOT NULL,
        PRIMARY KEY (upstream, tool)
      ) STRICT;
    )sql",
    R"sql(
      CREATE TABLE agents (
        id TEXT PRIMARY KEY,
        address TEXT NOT NULL,
        key_fingerprint TEXT NOT NULL,
        software TEXT NOT NULL,
        os_version TEXT NOT NULL,
        agent_version TEXT NOT NULL,
        services TEXT NOT NULL,
        ports TEXT NOT NULL,
        first_seen INTEGER NOT NULL,
        connected_at INTEGER NOT NULL,
        last_seen INTEGER NOT NULL,
        offline_since INTEGER,
        offline_reason TEXT NOT NULL,
        keyless_since INTEGER,
        connections INTEGER NOT NULL,
        replacements INTEGER NOT NULL
      ) STRICT, WITHOUT ROWID;
      CREATE TABLE gateway_alive (
        one INTEGER PRIMARY KEY CHECK (one = 1),
        at INTEGER NOT NULL
      ) STRICT;
    )sql",
};

}  // namespace

Result<void> migrate(Connection& connection) {
  std::int64_t version = 0;
  {
    Statement query = TRY(connection.prepare("PRAGMA user_version"));
    bool found = TRY(query.step());
    if (found) version = query.number(0);
  }
  if (version < 0 || version > static_cast<std::int64_t>(steps.size())) {
    return fail(ErrorCode::corrupt,
                "the database has version {}, and this program knows versions up to {}: a newer gateway made it",
                version, steps.size());
  }
  for (auto step = static_cast<std::size_t>(version); step < steps.size(); ++step) {
    auto run_step = [step](Connection& inside) -> Result<void> {
      TRY(inside.execute(steps[step]));
      return inside.execute(fmt::format("PRAGMA user_version = {}", step + 1));
    };
    TRY(connection.transaction(run_step));
  }
  return {};
}

}  // namespace hive::store
