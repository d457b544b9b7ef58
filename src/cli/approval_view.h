#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cli/output.h"

namespace hive::cli {

/// Lists show no more of a request's arguments.
inline constexpr std::int64_t listed_argument_bytes = 4096;
/// How many digits of an id are shown where that is enough.
inline constexpr std::size_t shown_id_digits = 8;

/// Whether a text is the whole id of a request: 32 hexadecimal digits. Only such a text may become part of a path.
bool is_approval_id(std::string_view text);

/// Somebody's word on a request.
struct VoteView {
  std::string principal;
  std::string identity;
  std::string at;
  std::string comment;

  /// The person, as far as known.
  [[nodiscard]] const std::string& who() const { return identity.empty() ? principal : identity; }
};

/// A call that waits, or waited, for other people, as GET /api/approvals tells it. Texts are as they came: not yet safe
/// for a terminal.
struct ApprovalView {
  std::string id;
  std::string principal;
  std::string identity;
  std::string role;
  std::string agent;
  std::string tool;
  std::string arguments;  ///< JSON text; the beginning of it when hidden_bytes is not 0
  std::int64_t hidden_bytes = 0;
  std::int64_t arguments_bytes = 0;
  std::string tier;
  std::string created_at;
  std::string expires_at;
  std::string status;  ///< "pending", "running", "approved", "rejected", "withdrawn", "expired"
  std::string digest;
  std::int64_t required = 1;
  std::vector<VoteView> votes;
  std::string surface;
  std::string request_id;
  std::string agent_key;
  std::string on_behalf_of;
  bool after_untrusted_text = false;
  std::optional<VoteView> refusal;
  std::string outcome;
  std::string reason;
  std::string raw;  ///< the JSON it was read from

  [[nodiscard]] const std::string& who() const { return identity.empty() ? principal : identity; }
  [[nodiscard]] std::string target() const { return agent.empty() ? tool : agent + "__" + tool; }
  [[nodiscard]] bool is_pending() const { return status == "pending"; }
};

Result<ApprovalView> parse_approval(std::string_view raw);
/// Reads the body of GET /api/approvals.
Result<std::vector<ApprovalView>> parse_approvals(std::string_view body);

/// The requests as a table. `with_status`: not only pending ones are in it. Ids are cut to a beginning that is enough
/// to name each of them.
std::string approvals_table(const std::vector<ApprovalView>& approvals, bool with_status, WallTime now,
                            std::size_t width, bool color);

/// Everything about one request, with every argument, safe for a terminal.
std::string approval_details(const ApprovalView& approval, WallTime now, bool color);

/// "in 14 min 20 s", "6 s ago"; the text itself when it is no time.
std::string time_from_now(const std::string& rfc3339, WallTime now);

/// "1 of 2".
std::string votes_of(const ApprovalView& approval);

}  // namespace hive::cli
