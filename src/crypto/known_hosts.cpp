#include "crypto/known_hosts.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <openssl/evp.h>

#include "base/strings.h"
#include "crypto/wildcard.h"

namespace hive::crypto {

namespace {

constexpr size_t max_line_bytes = 16384;
constexpr size_t sha1_bytes = 20;
constexpr std::uint16_t ssh_port = 22;

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

std::string name_in_file(std::string_view host, std::uint16_t port) {
  return port == ssh_port ? lower(host) : fmt::format("[{}]:{}", lower(host), port);
}

std::string_view take_field(std::string_view& rest) {
  std::string_view field = rest.substr(0, rest.find_first_of(" \t"));
  rest.remove_prefix(field.size());
  rest = trim(rest);
  return field;
}

// "|1|salt|hash" with hash = HMAC-SHA1(salt, name), both in base64.
Result<bool> hashed_name_matches(std::string_view field, std::string_view name) {
  auto parts = split(field, '|');
  if (parts.size() != 4 || parts[1] != "1") return fail(ErrorCode::corrupt, "hashed host name of an unknown form");
  auto salt = TRY_CONTEXT("salt of the hashed host name", from_base64(parts[2]));
  auto expected = TRY_CONTEXT("hashed host name", from_base64(parts[3]));
  if (salt.size() != sha1_bytes || expected.size() != sha1_bytes) {
    return fail(ErrorCode::corrupt, "hashed host name has a wrong length");
  }
  std::array<std::uint8_t, sha1_bytes> actual{};
  size_t size = 0;
  if (EVP_Q_mac(nullptr, "HMAC", nullptr, "SHA1", nullptr, salt.data(), salt.size(), as_bytes(name).data(), name.size(),
                actual.data(), actual.size(), &size) == nullptr ||
      size != actual.size()) {
    return fail(ErrorCode::internal, "OpenSSL cannot compute HMAC-SHA1");
  }
  return std::ranges::equal(actual, expected);
}

// A negated pattern that matches overrules all others of its list.
bool pattern_list_matches(std::string_view list, std::string_view name) {
  bool matched = false;
  for (std::string_view pattern : split(list, ',')) {
    bool negated = pattern.starts_with('!');
    if (negated) pattern.remove_prefix(1);
    if (!wildcard_matches(lower(pattern), name)) continue;
    if (negated) return false;
    matched = true;
  }
  return matched;
}

Result<bool> host_field_matches(std::string_view field, std::string_view name) {
  return field.starts_with('|') ? hashed_name_matches(field, name) : pattern_list_matches(field, name);
}

Result<void> read_line(std::string_view line, size_t line_number, std::string_view name, KnownHost& found) {
  if (line.size() > max_line_bytes) {
    return fail(ErrorCode::corrupt, "line of {} bytes is longer than {}", line.size(), max_line_bytes);
  }
  std::string_view rest = line;
  std::string_view marker = rest.starts_with('@') ? take_field(rest) : std::string_view();
  if (!marker.empty() && marker != "@revoked" && marker != "@cert-authority") {
    return fail(ErrorCode::corrupt, "unknown marker {}", quote(marker));
  }
  std::string_view hosts = take_field(rest);
  if (!TRY(host_field_matches(hosts, name))) return {};
  PublicKey key = TRY(PublicKey::from_line(rest));
  if (marker == "@revoked") {
    found.revoked.push_back(std::move(key));
  } else if (marker == "@cert-authority") {
    found.has_certificate_authority = true;
  } else {
    found.keys.push_back(std::move(key));
    found.line_numbers.push_back(line_number);
  }
  return {};
}

}  // namespace

HostKeyVerdict KnownHost::judge(const PublicKey& key) const {
  if (std::ranges::find(revoked, key) != revoked.end()) return HostKeyVerdict::revoked;
  if (std::ranges::find(keys, key) != keys.end()) return HostKeyVerdict::known;
  // Also when only keys of other types are known: trusting a first key then would let an attacker choose the type.
  return keys.empty() ? HostKeyVerdict::unknown : HostKeyVerdict::changed;
}

KnownHost lookup_known_host(std::string_view text, std::string_view host, std::uint16_t port) {
  KnownHost found;
  std::string name = name_in_file(host, port);
  size_t line_number = 0;
  for (std::string_view raw_line : split(text, '\n')) {
    ++line_number;
    std::string_view line = trim(raw_line);
    if (line.empty() || line.starts_with('#')) continue;
    auto read = read_line(line, line_number, name, found);
    if (!read) found.unreadable.push_back({line_number, std::move(read).error().message});
  }
  return found;
}

Result<std::string> format_known_host(std::string_view host, std::uint16_t port, const PublicKey& key) {
  bool plain = !host.empty() && host.size() <= 255 && std::ranges::all_of(host, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || c == ':' || c == '%';
  });
  if (!plain) return fail(ErrorCode::invalid_argument, "host name {} cannot stand in a known_hosts file", quote(host));
  return name_in_file(host, port) + " " + key.to_line();
}

}  // namespace hive::crypto
