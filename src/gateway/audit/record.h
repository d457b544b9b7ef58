#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "protocol/outcome.h"

namespace hive::audit {

/// What an entry of the audit log is about.
enum class RecordKind {
  intent,   ///< a call of tier write or admin is about to leave the gateway
  outcome,  ///< how a call ended
  event,  ///< anything else worth keeping: start, stop, reload, refusals before a call exists, agents coming and going
};

/// One entry before it has a place in the log. Text may hold any bytes; the writer bounds and escapes it.
struct Record {
  RecordKind kind = RecordKind::event;
  std::string call_id;     ///< joins an intent with its outcome; empty for events
  std::string request_id;  ///< what the caller was told
  std::string principal;   ///< who; never a credential
  std::string role;
  std::string surface;  ///< "rest", "mcp-http", "mcp-stdio", "ssh", "system"
  std::string action;   ///< "tool_call", "gateway_start", "agent_online", "authentication_failed", ...
  std::string agent;
  std::string tool;
  std::string arguments;  ///< raw JSON; longer than the log's limit: cut, with its size and SHA-256 beside it
  std::string tier;
  std::optional<protocol::Outcome> outcome;
  std::string reason;        ///< a short code
  std::string detail;        ///< one line for people
  std::string on_behalf_of;  ///< the person for whom an assistant or schedule acts
  bool after_untrusted_text = false;
  std::optional<std::uint64_t> duration_us;
};

}  // namespace hive::audit
