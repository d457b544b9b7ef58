#include <algorithm>
#include <array>
#include <ranges>
#include <utility>

#include "protocol/agent_protocol.h"
#include "protocol/mcp/message.h"

namespace hive::mcp {

namespace {

constexpr std::size_t max_token_bytes = 256;
constexpr std::array<std::string_view, 8> log_levels = {"emergency", "alert",  "critical", "error",
                                                        "warning",   "notice", "info",     "debug"};

std::unexpected<Fault> invalid(const Message& request, std::string message) {
  return std::unexpected(
      Fault{.code = protocol::invalid_params_code, .message = std::move(message), .id = std::string(request.id)});
}

bool is_token(std::string_view raw) {
  if (raw.size() > max_token_bytes) return false;
  if (json::is_string(raw)) return true;
  if (raw.starts_with('-')) raw.remove_prefix(1);
  return !raw.empty() && raw.find_first_not_of("0123456789") == std::string_view::npos;
}

// Those that a request may name, as server/discover lists them: the older ones begin with initialize.
std::string supported_revisions() {
  std::string list = "[";
  for (Revision revision : all_revisions() | std::views::reverse | std::views::filter(is_modern)) {
    if (list.size() > 1) list += ',';
    json::append_string(list, to_string(revision));
  }
  return list + "]";
}

}  // namespace

std::expected<RequestMeta, Fault> parse_meta(const Message& request) {
  if (request.params.empty()) return RequestMeta();
  auto params = json::parse_object(request.params, message_limits);
  if (!params) return invalid(request, "\"params\" must be an object");
  return parse_meta(request, *params);
}

std::expected<RequestMeta, Fault> parse_meta(const Message& request, std::span<const json::Member> params) {
  RequestMeta meta;
  std::optional<std::string_view> raw_meta = json::find(params, "_meta");
  if (!raw_meta) return meta;
  auto members = json::parse_object(*raw_meta, message_limits);
  if (!members) return invalid(request, "params._meta must be an object");

  for (const json::Member& member : *members) {
    if (member.key == "progressToken") {
      if (!is_token(member.value))
        return invalid(request, "params._meta.progressToken must be a string or an integer of at most 256 bytes");
      meta.progress_token = member.value;
      continue;
    }
    if (!member.key.starts_with(meta_prefix)) continue;
    std::string_view name = std::string_view(member.key).substr(meta_prefix.size());
    if (name == "protocolVersion") {
      meta.protocol_version = json::decode_string(member.value);
      if (!meta.protocol_version) return invalid(request, "params._meta " + member.key + " must be a string");
    } else if (name == "clientCapabilities" || name == "clientInfo") {
      if (!json::is_object(member.value)) return invalid(request, "params._meta " + member.key + " must be an object");
      (name == "clientInfo" ? meta.client_info : meta.client_capabilities) = member.value;
    } else if (name == "logLevel") {
      meta.log_level = json::decode_string(member.value);
      if (!meta.log_level || !log_severity(*meta.log_level))
        return invalid(request, "params._meta " + member.key +
                                    " must be one of debug, info, notice, warning, error, critical, alert, emergency");
    } else {
      continue;
    }
    meta.has_modern_keys = true;
  }
  return meta;
}

std::expected<Revision, Fault> modern_revision(const Message& request, const RequestMeta& meta) {
  for (auto [name, is_missing] : {std::pair{"protocolVersion", !meta.protocol_version.has_value()},
                                  std::pair{"clientCapabilities", meta.client_capabilities.empty()}}) {
    if (is_missing) return invalid(request, fmt::format("params._meta needs {}{}", meta_prefix, name));
  }
  std::optional<Revision> revision = revision_from_string(*meta.protocol_version);
  if (revision && is_modern(*revision)) return *revision;
  constexpr std::size_t shown = 64;
  return std::unexpected(Fault{
      .code = unsupported_version_code,
      .message = revision ? "this revision of the protocol begins with initialize" : "unsupported protocol version",
      .id = std::string(request.id),
      .data = fmt::format(R"({{"supported":{},"requested":{}}})", supported_revisions(),
                          json::encode_string(meta.protocol_version->substr(0, shown)))});
}

std::optional<unsigned> log_severity(std::string_view level) {
  const auto* found = std::ranges::find(log_levels, level);
  if (found == log_levels.end()) return std::nullopt;
  return static_cast<unsigned>(found - log_levels.begin());
}

}  // namespace hive::mcp
