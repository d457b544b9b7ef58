#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <unordered_map>

#include "base/strings.h"
#include "crypto/address_pattern.h"
#include "crypto/ssh_key.h"

// The grammar is that of sshd(8), section AUTHORIZED_KEYS FILE FORMAT.
namespace hive::crypto {

namespace {

constexpr size_t max_line_bytes = 16384;

struct Option {
  std::string name;  // lower case, as sshd compares
  std::optional<std::string> value;
};

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// The first field up to white space outside quotes; a quote preceded by a backslash does not end a quoted part.
Result<std::string_view> take_options(std::string_view& rest) {
  bool quoted = false;
  size_t at = 0;
  for (; at < rest.size(); ++at) {
    char c = rest[at];
    if (!quoted && (c == ' ' || c == '\t')) break;
    if (c == '\\' && at + 1 < rest.size() && rest[at + 1] == '"') {
      ++at;
    } else if (c == '"') {
      quoted = !quoted;
    }
  }
  if (quoted) return fail(ErrorCode::invalid_argument, "a quote is not closed");
  std::string_view options = rest.substr(0, at);
  rest.remove_prefix(at);
  return options;
}

Result<std::vector<Option>> split_options(std::string_view text) {
  std::vector<Option> options;
  while (true) {
    size_t name_end = std::min(text.find_first_of("=,\""), text.size());
    Option option{lower(text.substr(0, name_end)), std::nullopt};
    text.remove_prefix(name_end);
    if (option.name.empty()) return fail(ErrorCode::invalid_argument, "an option without a name");
    if (text.starts_with('=')) {
      text.remove_prefix(1);
      if (!text.starts_with('"')) {
        return fail(ErrorCode::invalid_argument, "the value of option {} must be in double quotes", quote(option.name));
      }
      text.remove_prefix(1);
      std::string value;
      size_t at = 0;
      for (; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\' && at + 1 < text.size() && text[at + 1] == '"') ++at;
        value += text[at];
      }
      if (at == text.size()) return fail(ErrorCode::invalid_argument, "a quote is not closed");
      text.remove_prefix(at + 1);
      option.value = std::move(value);
    }
    options.push_back(std::move(option));
    if (text.empty()) return options;
    if (!text.starts_with(',')) return fail(ErrorCode::invalid_argument, "text after a quoted option value");
    text.remove_prefix(1);
  }
}

// YYYYMMDD or YYYYMMDDHHMM[SS]; with a "Z" in UTC, otherwise in the local time zone.
Result<std::int64_t> parse_expiry_time(std::string_view value) {
  auto wrong = [&] {
    return fail(ErrorCode::invalid_argument, "expiry-time {} is not of the form YYYYMMDD[HHMM[SS]][Z]", quote(value));
  };
  std::string_view digits = value;
  bool utc = digits.ends_with('Z') || digits.ends_with('z');
  if (utc) digits.remove_suffix(1);
  if (digits.size() != 8 && digits.size() != 12 && digits.size() != 14) return wrong();
  if (!std::ranges::all_of(digits, [](unsigned char c) { return std::isdigit(c) != 0; })) return wrong();
  auto number = [&](size_t at, size_t count) {
    return at < digits.size() ? static_cast<int>(*parse_int64(digits.substr(at, count))) : 0;
  };
  std::tm parts{};
  parts.tm_year = number(0, 4) - 1900;
  parts.tm_mon = number(4, 2) - 1;
  parts.tm_mday = number(6, 2);
  parts.tm_hour = number(8, 2);
  parts.tm_min = number(10, 2);
  parts.tm_sec = number(12, 2);
  parts.tm_isdst = -1;
  std::tm normalised = parts;
  std::time_t time = utc ? ::timegm(&normalised) : std::mktime(&normalised);
  // 20260231 would silently become the 3rd of March.
  if (normalised.tm_mon != parts.tm_mon || normalised.tm_mday != parts.tm_mday || parts.tm_hour > 23 ||
      parts.tm_min > 59 || parts.tm_sec > 59) {
    return fail(ErrorCode::invalid_argument, "expiry-time {} is not a date and time that exists", quote(value));
  }
  return time;
}

// Options that ask for less than every agent gets anyway: no forwarding, no terminal, no shell.
bool is_restriction(std::string_view name) {
  constexpr std::array<std::string_view, 6> names = {"restrict", "no-agent-forwarding", "no-port-forwarding",
                                                     "no-pty",   "no-user-rc",          "no-x11-forwarding"};
  return std::ranges::find(names, name) != names.end();
}

bool is_known_to_sshd(std::string_view name) {
  constexpr std::array<std::string_view, 16> names = {
      "agent-forwarding", "cert-authority", "command",         "environment",    "no-touch-required",
      "permitlisten",     "permitopen",     "port-forwarding", "principals",     "pty",
      "tunnel",           "user-rc",        "verify-required", "x11-forwarding", "from",
      "expiry-time"};
  return std::ranges::find(names, name) != names.end();
}

Result<void> apply_from(AuthorizedKey& entry, const std::string& value) {
  if (!entry.from_patterns.empty()) return fail(ErrorCode::invalid_argument, "option from= is given twice");
  for (std::string_view pattern : split(value, ',')) {
    pattern = trim(pattern);
    TRY(check_address_pattern(pattern));
    entry.from_patterns.emplace_back(pattern);
  }
  return {};
}

Result<void> apply_option(AuthorizedKey& entry, const Option& option) {
  if (option.name == "from" && option.value) return apply_from(entry, *option.value);
  if (option.name == "expiry-time" && option.value) {
    std::int64_t expiry = TRY(parse_expiry_time(*option.value));
    entry.expiry_unix_seconds = std::min(expiry, entry.expiry_unix_seconds.value_or(expiry));
    return {};
  }
  if (is_restriction(option.name) && !option.value) return {};
  if (is_restriction(option.name)) {
    return fail(ErrorCode::invalid_argument, "option {} takes no value", quote(option.name));
  }
  if (option.name == "from" || option.name == "expiry-time") {
    return fail(ErrorCode::invalid_argument, "option {} needs a value in double quotes", quote(option.name));
  }
  if (is_known_to_sshd(option.name)) {
    return fail(ErrorCode::invalid_argument, "option {} cannot be honoured by the gateway; remove it from the line",
                quote(option.name));
  }
  return fail(ErrorCode::invalid_argument, "unknown option {}", quote(option.name));
}

bool begins_with_key_type(std::string_view line) {
  std::string_view word = line.substr(0, line.find_first_of(" \t"));
  constexpr std::array<std::string_view, 7> exact = {
      "ssh-ed25519",         "ssh-rsa", "ssh-dss", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
      "ssh-xmss@openssh.com"};
  bool is_variant = word.ends_with("@openssh.com") && word.find_first_of("=,\"") == std::string_view::npos;
  return is_variant || std::ranges::find(exact, word) != exact.end();
}

Result<AuthorizedKey> parse_line(std::string_view line) {
  if (line.size() > max_line_bytes) {
    return fail(ErrorCode::invalid_argument, "line of {} bytes is longer than {}", line.size(), max_line_bytes);
  }
  AuthorizedKey entry;
  if (!begins_with_key_type(line)) {
    std::string_view option_text = TRY(take_options(line));
    auto options = TRY(split_options(option_text));
    line = trim(line);
    // Without a key behind it, the first word was most likely a misspelt key type and not an option.
    if (!begins_with_key_type(line)) {
      return fail(ErrorCode::invalid_argument,
                  "no key of a known type; expected [options] ssh-ed25519 AAAA... AGENT-ID");
    }
    for (const Option& option : options)
      TRY(apply_option(entry, option));
  }
  std::string_view type = line.substr(0, line.find_first_of(" \t"));
  if (type.find("-cert-v") != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "certificates ({}) are not supported; give the ssh-ed25519 key itself",
                quote(type));
  }
  if (type != "ssh-ed25519") {
    return fail(ErrorCode::invalid_argument, "key type {} is not accepted; make an Ed25519 key: ssh-keygen -t ed25519",
                quote(type));
  }
  entry.key = TRY(PublicKey::from_line(line));
  if (entry.key.comment().empty()) {
    return fail(ErrorCode::invalid_argument, "the key has no comment; write the agent id behind it");
  }
  TRY_CONTEXT("comment", check_agent_id(entry.key.comment()));
  return entry;
}

}  // namespace

AuthorizedKeys parse_authorized_keys(std::string_view text) {
  AuthorizedKeys result;
  std::unordered_map<std::string, size_t> line_of_key;
  size_t line_number = 0;
  for (std::string_view raw_line : split(text, '\n')) {
    ++line_number;
    std::string_view line = trim(raw_line);
    if (line.empty() || line.starts_with('#')) continue;
    auto entry = parse_line(line);
    if (!entry) {
      result.refused.push_back({line_number, std::move(entry).error().message});
      continue;
    }
    // Which of two lines counts would otherwise depend on the reader: options and ids may differ.
    auto [first, inserted] = line_of_key.emplace(as_text(entry->key.blob()), line_number);
    if (!inserted) {
      result.refused.push_back({line_number, fmt::format("the same key already stands in line {}", first->second)});
      continue;
    }
    entry->line_number = line_number;
    result.keys.push_back(std::move(*entry));
  }
  return result;
}

}  // namespace hive::crypto
