#include "net/vault/answer.h"

#include <optional>
#include <vector>

#include "base/strings.h"
#include "protocol/json.h"

namespace hive::net::vault {

namespace {

constexpr json::Limits limits{.max_bytes = std::size_t{1} << 20, .max_depth = 32, .max_values = 20'000};

/// The members of an object inside an object; nullopt when there is none by that name.
std::optional<std::vector<json::Member>> object_in(const std::vector<json::Member>& members, std::string_view name) {
  std::optional<std::string_view> raw = json::find(members, name);
  if (!raw || !json::is_object(*raw)) return std::nullopt;
  Result<std::vector<json::Member>> inner = json::parse_object(*raw, limits);
  if (!inner) return std::nullopt;
  return *std::move(inner);
}

/// Whether the metadata of a KV version 2 answer say that the newest version is deleted or destroyed.
bool is_deleted(const std::vector<json::Member>& data) {
  std::optional<std::vector<json::Member>> metadata = object_in(data, "metadata");
  if (!metadata) return false;
  std::optional<std::string_view> time = json::find(*metadata, "deletion_time");
  std::optional<std::string_view> destroyed = json::find(*metadata, "destroyed");
  return (time && json::decode_string(*time).value_or("") != "") || (destroyed && *destroyed == "true");
}

std::unexpected<Error> deleted() {
  return fail(ErrorCode::not_found, "the newest version of this secret is deleted; write a new one, or undelete it");
}

std::optional<std::vector<json::Member>> data_of(std::string_view body) {
  Result<std::vector<json::Member>> answer = json::parse_object(body, limits);
  return answer ? object_in(*answer, "data") : std::nullopt;
}

Result<std::string> text_of(std::string_view raw, std::string_view field) {
  std::optional<std::string> text = json::decode_string(raw);
  if (text) return *std::move(text);
  return fail(ErrorCode::invalid_argument, "the field {} is not a text", quote(field.substr(0, 128)));
}

}  // namespace

Result<void> judge_status(unsigned status, std::string_view body) {
  switch (status) {
    case 200:
      return {};
    case 400:
      return fail(ErrorCode::invalid_argument, "Vault does not understand the request (400); check path and namespace");
    case 403:
      return fail(ErrorCode::permission_denied,
                  "Vault refuses the token (403): it has expired, or its policy does not allow to read this path");
    case 404:
      if (std::optional<std::vector<json::Member>> data = data_of(body); data && is_deleted(*data)) return deleted();
      return fail(ErrorCode::not_found,
                  "there is no such secret (404); a path of KV version 2 has data/ behind the mount, as in "
                  "secret/data/gateway");
    case 429:
    case 472:
    case 473:
      return fail(ErrorCode::unavailable,
                  "this node of Vault does not serve reads now ({}); try again, or another node", status);
    case 503:
      if (body.contains("sealed")) return fail(ErrorCode::unavailable, "Vault is sealed (503); unseal it");
      return fail(ErrorCode::unavailable, "Vault is not available (503): sealed, or under maintenance");
    default:
      return fail(ErrorCode::unavailable, "Vault answers with status {}; look into its log", status);
  }
}

Result<std::string> field_of(std::string_view body, std::string_view field) {
  if (!json::parse_object(body, limits)) {
    return fail(ErrorCode::corrupt, "the answer is not JSON; is this the address of Vault?");
  }
  std::optional<std::vector<json::Member>> data = data_of(body);
  if (!data) return fail(ErrorCode::corrupt, "the answer holds no secret; is this the path of a secret?");
  if (std::optional<std::vector<json::Member>> inner = object_in(*data, "data")) {
    if (std::optional<std::string_view> raw = json::find(*inner, field)) return text_of(*raw, field);
  } else if (is_deleted(*data)) {
    return deleted();
  }
  if (std::optional<std::string_view> raw = json::find(*data, field)) return text_of(*raw, field);
  return fail(ErrorCode::not_found, "the secret has no field {}", quote(field.substr(0, 128)));
}

}  // namespace hive::net::vault
