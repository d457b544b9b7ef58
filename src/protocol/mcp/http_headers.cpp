#include "protocol/mcp/http_headers.h"

#include <algorithm>
#include <utility>

#include "base/strings.h"
#include "base/utf8.h"
#include "protocol/agent_protocol.h"

namespace hive::mcp {

namespace {

constexpr std::string_view encoded_prefix = "=?base64?";
constexpr std::string_view encoded_suffix = "?=";

std::unexpected<Fault> mismatch(const Message& request, std::string message) {
  return std::unexpected(
      Fault{.code = header_mismatch_code, .message = std::move(message), .id = std::string(request.id)});
}

bool is_plain(std::string_view value) {
  return std::ranges::all_of(value, [](char c) { return (c >= ' ' && c <= '~') || c == '\t'; });
}

bool looks_encoded(std::string_view value) {
  return value.starts_with(encoded_prefix) && value.ends_with(encoded_suffix);
}

// The member of params that Mcp-Name mirrors; empty if the method has none.
std::string_view name_member(std::string_view method) {
  if (method == "tools/call" || method == "prompts/get") return "name";
  if (method == "resources/read") return "uri";
  return {};
}

std::optional<std::string> name_of(std::string_view method, std::string_view raw_params) {
  std::string_view key = name_member(method);
  if (key.empty()) return std::nullopt;
  Result<std::vector<json::Member>> params = json::parse_object(raw_params, message_limits);
  if (!params) return std::nullopt;
  std::optional<std::string_view> raw = json::find(*params, key);
  return raw ? json::decode_string(*raw) : std::nullopt;
}

bool same_word(std::string_view left, std::string_view right) {
  auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 'a' - 'A') : c; };
  return std::ranges::equal(left, right, {}, lower, lower);
}

// A weight of RFC 9110 section 12.4.2 in thousandths; what is none counts as 0.
unsigned weight(std::string_view text) {
  if (text.empty() || text.size() > 5 || (text[0] != '0' && text[0] != '1')) return 0;
  if (text.size() > 1 && text[1] != '.') return 0;
  unsigned thousandths = text[0] == '1' ? 1000 : 0;
  unsigned place = 100;
  for (char c : text.substr(std::min<std::size_t>(2, text.size()))) {
    if (c < '0' || c > '9') return 0;
    thousandths += static_cast<unsigned>(c - '0') * place;
    place /= 10;
  }
  return thousandths > 1000 ? 0 : thousandths;
}

// How closely a media range names a type: 3 the type itself, 2 "type/*", 1 "*/*", 0 not at all.
int closeness(std::string_view range, std::string_view media_type) {
  if (same_word(range, media_type)) return 3;
  if (range == "*/*") return 1;
  std::string_view type = media_type.substr(0, media_type.find('/'));
  bool is_whole_type = range.ends_with("/*") && same_word(range.substr(0, range.size() - 2), type);
  return is_whole_type ? 2 : 0;
}

}  // namespace

std::optional<std::string> decode_header_value(std::string_view value) {
  bool is_encoded = looks_encoded(value) && value.size() >= encoded_prefix.size() + encoded_suffix.size();
  if (!is_encoded) return is_plain(value) ? std::optional(std::string(value)) : std::nullopt;
  value.remove_prefix(encoded_prefix.size());
  value.remove_suffix(encoded_suffix.size());
  Result<std::vector<std::uint8_t>> bytes = from_base64(value);
  if (!bytes || !utf8::is_valid(as_text(*bytes))) return std::nullopt;
  return std::string(as_text(*bytes));
}

std::string encode_header_value(std::string_view value) {
  auto is_space = [](char c) { return c == ' ' || c == '\t'; };
  bool is_padded = !value.empty() && (is_space(value.front()) || is_space(value.back()));
  if (is_plain(value) && !is_padded && !looks_encoded(value)) return std::string(value);
  return std::string(encoded_prefix) + to_base64(as_bytes(value)) + std::string(encoded_suffix);
}

std::expected<void, Fault> check_headers(const HeaderLookup& headers, const Message& request, const RequestMeta& meta) {
  std::optional<std::string_view> version = headers("mcp-protocol-version");
  if (!version) return mismatch(request, "the header MCP-Protocol-Version is missing or repeated");
  if (!meta.protocol_version) {
    return std::unexpected(Fault{.code = protocol::invalid_params_code,
                                 .message = fmt::format("params._meta needs {}protocolVersion", meta_prefix),
                                 .id = std::string(request.id)});
  }
  if (*version != *meta.protocol_version)
    return mismatch(request, "the header MCP-Protocol-Version is not the version in params._meta");

  std::optional<std::string_view> method = headers("mcp-method");
  if (!method) return mismatch(request, "the header Mcp-Method is missing or repeated");
  if (*method != request.method) return mismatch(request, "the header Mcp-Method is not the method of the body");

  // A body without a usable name is for the method itself to refuse.
  std::optional<std::string> name = name_of(request.method, request.params);
  if (!name) return {};
  std::string_view member = name_member(request.method);
  std::optional<std::string_view> header = headers("mcp-name");
  if (!header)
    return mismatch(request, fmt::format("the header Mcp-Name is missing or repeated, params.{} is not", member));
  std::optional<std::string> decoded = decode_header_value(*header);
  if (!decoded) return mismatch(request, "the header Mcp-Name is neither plain nor valid Base64 of UTF-8");
  if (*decoded != *name)
    return mismatch(request, fmt::format("the header Mcp-Name is not params.{} of the body", member));
  return {};
}

std::vector<Header> request_headers(std::string_view method, std::string_view raw_params) {
  std::vector<Header> headers = {{.name = "Mcp-Method", .value = std::string(method)}};
  if (std::optional<std::string> name = name_of(method, raw_params))
    headers.push_back({.name = "Mcp-Name", .value = encode_header_value(*name)});
  return headers;
}

bool accepts(std::optional<std::string_view> accept, std::string_view media_type) {
  if (!accept || trim(*accept).empty()) return true;
  int closest = 0;
  bool is_admitted = false;
  for (std::string_view element : split(*accept, ',')) {
    std::vector<std::string_view> parts = split(element, ';');
    int close = closeness(trim(parts.front()), media_type);
    if (close == 0) continue;
    unsigned quality = 1000;
    for (std::string_view parameter : std::span(parts).subspan(1)) {
      std::string_view text = trim(parameter);
      if (text.starts_with("q=") || text.starts_with("Q=")) quality = weight(text.substr(2));
    }
    if (close > closest) is_admitted = quality > 0;
    if (close == closest) is_admitted = is_admitted || quality > 0;
    closest = std::max(closest, close);
  }
  return is_admitted;
}

}  // namespace hive::mcp
