#include "gateway/audit/entry.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>

#include "base/strings.h"
#include "base/utf8.h"
#include "crypto/sha256.h"
#include "protocol/json.h"

namespace hive::audit {

namespace {

constexpr size_t max_text_bytes = 1024;
constexpr size_t max_detail_bytes = 4096;
constexpr size_t max_unknown_keys = 32;

constexpr std::array<std::string_view, field_count> field_names = {
    "seq",
    "time",
    "kind",
    "call_id",
    "request_id",
    "principal",
    "role",
    "surface",
    "on_behalf_of",
    "action",
    "agent",
    "tool",
    "tier",
    "arguments",
    "arguments_bytes",
    "arguments_sha256",
    "after_untrusted_text",
    "outcome",
    "reason",
    "detail",
    "duration_us",
};

void append_key(std::string& out, Field field) {
  out += ",\"";
  out += to_string(field);
  out += "\":";
}

void append_number(std::string& out, std::uint64_t number) {
  std::array<char, 20> digits{};
  auto [end, error] = std::to_chars(digits.data(), digits.data() + digits.size(), number);
  out.append(digits.data(), end);
}

// Keys are plain words. An escaped key would be another word to a reader that decodes it.
bool is_plain_key(std::string_view key) {
  return !key.empty() && key.find('\\') == std::string_view::npos;
}

// The longest prefix within the limit that does not cut a character.
std::string_view cut(std::string_view text, size_t max_bytes) {
  return text.size() <= max_bytes ? text : utf8::truncate(text, max_bytes);
}

void append_text(std::string& out, Field field, std::string_view text, size_t max_bytes = max_text_bytes) {
  if (text.empty()) return;
  append_key(out, field);
  if (text.size() <= max_bytes) {
    json::append_string(out, text);
    return;
  }
  // Two long names must not become the same entry without a trace of the cut.
  json::append_string(out, fmt::format("{}... ({} bytes)", cut(text, max_bytes), text.size()));
}

void append_arguments(std::string& out, std::string_view arguments, size_t max_bytes) {
  if (arguments.empty()) return;
  append_key(out, Field::arguments);
  json::append_string(out, cut(arguments, max_bytes));
  if (arguments.size() <= max_bytes) return;
  append_key(out, Field::arguments_bytes);
  append_number(out, arguments.size());
  append_key(out, Field::arguments_sha256);
  json::append_string(out, to_hex(crypto::sha256(arguments)));
}

// A calendar date costs more than the rest of the entry, and thousands of entries share their second.
void append_time(std::string& out, WallTime time) {
  auto milliseconds = std::chrono::floor<std::chrono::milliseconds>(time);
  auto second = std::chrono::floor<std::chrono::seconds>(milliseconds);
  thread_local std::chrono::sys_seconds cached_second = std::chrono::sys_seconds::min();
  thread_local std::string cached_text;
  if (second != cached_second) {
    cached_text = format_rfc3339(second);
    cached_text.resize(cached_text.size() - 4);  // without "000Z"
    cached_second = second;
  }
  auto fraction = (milliseconds - second).count();
  out += cached_text;
  out += static_cast<char>('0' + fraction / 100);
  out += static_cast<char>('0' + fraction / 10 % 10);
  out += static_cast<char>('0' + fraction % 10);
  out += 'Z';
}

// Whether any of 8 bytes ends a run of plain characters in a JSON string: a quote, a backslash, a control character.
bool has_special(const char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, 8);
  constexpr std::uint64_t ones = 0x0101010101010101;
  constexpr std::uint64_t highs = 0x8080808080808080;
  auto zero_byte = [](std::uint64_t value) { return (value - ones) & ~value & highs; };
  std::uint64_t control = (word - ones * 0x20) & ~word & highs;
  return (control | zero_byte(word ^ (ones * '"')) | zero_byte(word ^ (ones * '\\'))) != 0;
}

std::optional<unsigned> unicode_escape(std::string_view text) {
  if (text.size() < 6 || !text.starts_with("\\u")) return std::nullopt;
  unsigned unit = 0;
  auto [end, error] = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
  if (error != std::errc() || end != text.data() + 6) return std::nullopt;
  return unit;
}

// A surrogate needs its other half: JSON readers do not agree on what a lone one is.
size_t unicode_escape_length(std::string_view text) {
  auto unit = unicode_escape(text);
  if (!unit) return 0;
  if (*unit < 0xd800 || *unit >= 0xe000) return 6;
  auto low = *unit < 0xdc00 ? unicode_escape(text.substr(6)) : std::nullopt;
  return low && *low >= 0xdc00 && *low < 0xe000 ? 12 : 0;
}

// The length of a JSON string with its quotes at the start of `text`; 0 if there is none.
size_t string_length(std::string_view text) {
  if (!text.starts_with('"')) return 0;
  size_t at = 1;
  while (true) {
    while (at + 8 <= text.size() && !has_special(text.data() + at))
      at += 8;
    while (at < text.size() && text[at] != '"' && text[at] != '\\' && static_cast<unsigned char>(text[at]) >= 0x20)
      ++at;
    if (at >= text.size()) return 0;
    if (text[at] == '"') return at + 1;
    if (text[at] != '\\' || at + 1 >= text.size()) return 0;
    constexpr std::string_view simple_escapes = "\"\\/bfnrt";
    char escape = text[at + 1];
    if (simple_escapes.find(escape) != std::string_view::npos) {
      at += 2;
    } else if (size_t length = unicode_escape_length(text.substr(at)); length > 0) {
      at += length;
    } else {
      return 0;
    }
  }
}

size_t number_length(std::string_view text) {
  size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  return end > 1 && text[0] == '0' ? 0 : end;
}

size_t value_length(std::string_view text) {
  if (text.starts_with('"')) return string_length(text);
  if (text.starts_with("true")) return 4;
  if (text.starts_with("false")) return 5;
  return number_length(text);
}

enum class ValueType { string, number, boolean };

ValueType type_of(std::string_view raw) {
  if (raw.starts_with('"')) return ValueType::string;
  return raw[0] == 't' || raw[0] == 'f' ? ValueType::boolean : ValueType::number;
}

ValueType type_of(Field field) {
  switch (field) {
    case Field::seq:
    case Field::arguments_bytes:
    case Field::duration_us:
      return ValueType::number;
    case Field::after_untrusted_text:
      return ValueType::boolean;
    default:
      return ValueType::string;
  }
}

std::unexpected<Error> refused(std::string_view why) {
  return fail(ErrorCode::corrupt, "{}", why);
}

}  // namespace

std::string_view to_string(Field field) {
  return field_names[static_cast<size_t>(field)];
}

std::string_view to_string(RecordKind kind) {
  switch (kind) {
    case RecordKind::intent:
      return "intent";
    case RecordKind::outcome:
      return "outcome";
    case RecordKind::event:
      return "event";
  }
  return "event";
}

void append_entry_head(std::string& out, std::uint64_t seq) {
  out += "{\"seq\":";
  append_number(out, seq);
}

void append_entry_body(std::string& out, const Record& record, WallTime time, size_t max_arguments_bytes) {
  append_key(out, Field::time);
  out += '"';
  append_time(out, time);
  out += '"';
  append_text(out, Field::kind, to_string(record.kind));
  append_text(out, Field::call_id, record.call_id);
  append_text(out, Field::request_id, record.request_id);
  append_text(out, Field::principal, record.principal);
  append_text(out, Field::role, record.role);
  append_text(out, Field::surface, record.surface);
  append_text(out, Field::on_behalf_of, record.on_behalf_of);
  append_text(out, Field::action, record.action);
  append_text(out, Field::agent, record.agent);
  append_text(out, Field::tool, record.tool);
  append_text(out, Field::tier, record.tier);
  append_arguments(out, record.arguments, std::min(max_arguments_bytes, max_arguments_limit));
  if (record.after_untrusted_text) {
    append_key(out, Field::after_untrusted_text);
    out += "true";
  }
  if (record.outcome) append_text(out, Field::outcome, protocol::to_string(*record.outcome));
  append_text(out, Field::reason, record.reason);
  append_text(out, Field::detail, record.detail, max_detail_bytes);
  if (record.duration_us) {
    append_key(out, Field::duration_us);
    append_number(out, *record.duration_us);
  }
  out += '}';
}

Result<EntryView> EntryView::parse(std::string_view line) {
  if (!utf8::is_valid(line)) return refused("it is not valid UTF-8");
  EntryView entry;
  std::string_view rest = line;
  size_t next_field = 0;
  char before = '{';
  // Such keys are few; a line full of them must not cost a comparison of each with each.
  std::array<std::string_view, max_unknown_keys> unknown;
  size_t unknown_count = 0;
  while (true) {
    if (!rest.starts_with(before)) return refused("it is not one flat JSON object");
    rest.remove_prefix(1);
    size_t key_length = string_length(rest);
    if (key_length == 0 || rest.substr(key_length, 1) != ":") return refused("it is not one flat JSON object");
    std::string_view key = rest.substr(1, key_length - 2);
    if (!is_plain_key(key)) return refused("it has a key that is empty or escaped");
    rest.remove_prefix(key_length + 1);
    size_t length = value_length(rest);
    if (length == 0) return refused("it has a value that is no string, whole number or boolean");
    std::string_view value = rest.substr(0, length);
    rest.remove_prefix(length);

    const auto* found = std::find(field_names.begin() + next_field, field_names.end(), key);
    if (found != field_names.end()) {
      next_field = static_cast<size_t>(found - field_names.begin()) + 1;
      if (type_of(value) != type_of(static_cast<Field>(next_field - 1))) return refused("a value has the wrong type");
      entry.raw_[next_field - 1] = value;
    } else if (std::find(field_names.begin(), field_names.end(), key) != field_names.end()) {
      return refused("its keys are out of order or repeated");
    } else {
      auto seen = std::span(unknown).first(unknown_count);
      if (std::ranges::find(seen, key) != seen.end()) return refused("its keys are out of order or repeated");
      if (unknown_count == unknown.size()) return refused("it has too many keys that are not known");
      unknown[unknown_count++] = key;
    }
    if (rest == "}") break;
    before = ',';
  }
  std::string_view seq = entry.raw(Field::seq);
  auto [end, error] = std::from_chars(seq.data(), seq.data() + seq.size(), entry.seq_);
  if (seq.empty() || error != std::errc() || end != seq.data() + seq.size())
    return refused("it has no sequence number");
  if (!entry.has(Field::time) || !entry.has(Field::kind)) return refused("its time or kind is missing");
  return entry;
}

std::string EntryView::text(Field field) const {
  std::string_view value = raw(field);
  if (!value.starts_with('"')) return std::string(value);
  return json::decode_string(value).value_or(std::string());
}

bool EntryView::equals(Field field, std::string_view expected) const {
  std::string_view value = raw(field);
  if (value.find('\\') != std::string_view::npos) return text(field) == expected;
  if (value.starts_with('"')) value = value.substr(1, value.size() - 2);
  return value == expected;
}

}  // namespace hive::audit
