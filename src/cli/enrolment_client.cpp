#include "cli/enrolment_client.h"

#include <algorithm>
#include <cerrno>

#include <unistd.h>

#include "base/file.h"
#include "base/strings.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr std::size_t max_token_bytes = 4096;
constexpr std::size_t max_answer_bytes = std::size_t{64} << 20;
constexpr int enrol_attempts = 3;

std::unexpected<Failure> usage(std::string message) {
  return std::unexpected(Failure{ExitCode::usage, std::move(message)});
}

Result<std::string> read_standard_input() {
  std::string content;
  char buffer[1024];
  while (true) {
    ssize_t count = ::read(STDIN_FILENO, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, "standard input"));
    if (count == 0) return content;
    content.append(buffer, static_cast<std::size_t>(count));
    if (content.size() > max_token_bytes) {
      return fail(ErrorCode::resource_exhausted, "standard input: too long for a join token");
    }
  }
}

std::expected<std::string, Failure> checked(std::string_view text, std::string_view source) {
  std::string token(trim(text));
  bool visible = std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
  if (token.empty() || !visible || token.size() > max_token_bytes) {
    return usage(fmt::format("the join token from {} is not one", source));
  }
  return token;
}

std::string text_of(std::span<const json::Member> members, std::string_view key) {
  auto raw = json::find(members, key);
  return raw ? json::decode_string(*raw).value_or("") : "";
}

Failure strange_answer(const GatewayClient& gateway, std::string_view path, std::string_view what) {
  return {ExitCode::error, fmt::format("{}{}: {}: is this a gateway of this version?",
                                       escape_for_terminal(gateway.connection().url), path, what)};
}

std::string with_member(std::string body, std::string_view key, std::string_view value) {
  body += body.empty() ? "{" : ",";
  json::append_string(body, key);
  body += ':';
  json::append_string(body, value);
  return body;
}

}  // namespace

std::expected<std::optional<std::string>, Failure> given_join_token(const JoinTokenOptions& options,
                                                                    const Environment& environment) {
  if (!options.token.empty() && !options.file.empty()) {
    return usage("give --join-token or --join-token-file, not both");
  }
  if (!options.token.empty()) return checked(options.token, "--join-token");
  if (options.file == "-") {
    Result<std::string> text = read_standard_input();
    if (!text) return usage(text.error().message);
    return checked(*text, "standard input");
  }
  if (!options.file.empty()) {
    Result<std::string> text = read_file(options.file, max_token_bytes, FileSecrecy::owner_only);
    if (!text) return usage("--join-token-file: " + text.error().message);
    return checked(*text, "--join-token-file");
  }
  if (auto token = environment("MYRMEX_JOIN_TOKEN")) return checked(*token, "MYRMEX_JOIN_TOKEN");
  return std::nullopt;
}

std::expected<JoinToken, Failure> mint_join_token(const GatewayClient& gateway, const std::string& agent,
                                                  std::optional<std::int64_t> ttl_seconds) {
  std::string request = with_member("", "agent_id", agent);
  if (ttl_seconds) request += fmt::format(",\"ttl_seconds\":{}", *ttl_seconds);
  auto body = gateway.post_json("/api/enroll/token", request + "}");
  if (!body) return std::unexpected(body.error());
  auto members = json::parse_object(*body, {.max_bytes = max_answer_bytes});
  JoinToken token;
  if (members) token = {text_of(*members, "join_token"), text_of(*members, "expires_at"), *body};
  if (token.token.empty()) return std::unexpected(strange_answer(gateway, "/api/enroll/token", "no join token"));
  return token;
}

std::expected<EnrolledAgent, Failure> enroll_key(const GatewayClient& gateway, const std::string& join_token,
                                                 const std::string& agent, const crypto::PublicKey& key) {
  std::string request = with_member("", "join_token", join_token);
  request = with_member(std::move(request), "agent_id", agent);
  request = with_member(std::move(request), "public_key", key.to_line()) + "}";
  auto body = gateway.post_json("/api/enroll", request);
  for (int attempt = 1; !body && body.error().code == ExitCode::unsettled && attempt < enrol_attempts; ++attempt)
    body = gateway.post_json("/api/enroll", request);
  if (!body) return std::unexpected(body.error());
  auto members = json::parse_object(*body, {.max_bytes = max_answer_bytes});
  if (!members) return std::unexpected(strange_answer(gateway, "/api/enroll", members.error().message));
  EnrolledAgent enrolled{text_of(*members, "fingerprint"), text_of(*members, "gateway_host_key"), *body};
  if (enrolled.fingerprint.empty()) enrolled.fingerprint = key.fingerprint();
  if (enrolled.fingerprint != key.fingerprint()) {
    return std::unexpected(strange_answer(gateway, "/api/enroll", "it has enrolled another key"));
  }
  if (!enrolled.gateway_host_key.empty()) {
    // What goes into a configuration must be a key and nothing else.
    auto host_key = crypto::PublicKey::from_line(enrolled.gateway_host_key);
    if (!host_key) return std::unexpected(strange_answer(gateway, "/api/enroll", "its host key is not readable"));
    enrolled.gateway_host_key = host_key->to_line();
  }
  return enrolled;
}

std::expected<std::string, Failure> revoke_agent(const GatewayClient& gateway, const std::string& agent,
                                                 const std::string& fingerprint) {
  std::string request = with_member("", "agent_id", agent);
  if (!fingerprint.empty()) request = with_member(std::move(request), "key", fingerprint);
  return gateway.post_json("/api/agents/revoke", request + "}");
}

std::expected<AgentConnection, Failure> connection_of(const GatewayClient& gateway, const std::string& agent) {
  auto body = gateway.get_json("/api/fleet");
  if (!body) return std::unexpected(body.error());
  auto agents = json::parse_array(*body, {.max_bytes = max_answer_bytes, .max_values = 5'000'000});
  if (!agents) return std::unexpected(strange_answer(gateway, "/api/fleet", agents.error().message));
  for (std::string_view raw : *agents) {
    auto members = json::parse_object(raw, {.max_bytes = max_answer_bytes});
    if (!members || text_of(*members, "id") != agent) continue;
    AgentConnection connection;
    auto online = json::find(*members, "online");
    connection.online = online && json::decode_boolean(*online).value_or(false);
    connection.key_fingerprint = text_of(*members, "key_fingerprint");
    auto draining = json::find(*members, "draining_sessions");
    connection.draining_sessions = draining ? json::decode_integer(*draining).value_or(0) : 0;
    return connection;
  }
  return AgentConnection{};
}

}  // namespace hive::cli
