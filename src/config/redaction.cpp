#include "config/redaction.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "base/strings.h"
#include "config/document.h"
#include "config/rewriter.h"
#include "config/secret_reference.h"
#include "crypto/random.h"
#include "crypto/sha256.h"

namespace hive::config {

namespace {

constexpr std::string_view placeholder_start = "[redacted";
constexpr std::string_view note_prefix = "_comment";
constexpr std::size_t placeholder_digest_bytes = 6;

// Bearer tokens may move between the keys that hold them: narrowing one is a common edit.
std::string_view kind_of(std::string_view place) {
  bool is_token = place == "auth_token" || place == "tokens" || place == "scoped_tokens[].token";
  return is_token ? "token" : place;
}

// The key is the process's own, so that nobody can try passwords against the digests.
std::string placeholder_of(std::string_view raw, std::string_view kind) {
  static const std::string key = crypto::random_hex(32);
  // The key has a fixed length and a kind holds no NUL, so that no two triples give one text.
  std::string text = key;
  text += kind;
  text += '\0';
  text += raw;
  crypto::Digest digest = crypto::sha256(text);
  return fmt::format("{}:{}]", placeholder_start, to_hex(std::span(digest).first(placeholder_digest_bytes)));
}

/// Whether a value of a secret's place says nothing that must be hidden.
bool shows_nothing(std::string_view raw) {
  if (json::is_null(raw)) return true;
  std::optional<std::string> text = json::decode_string(raw);
  return text && (text->empty() || is_secret_reference(trim(*text)));
}

/// Replaces secrets, and remembers which placeholder stands for which.
class Redactor final : public Rewriter {
 public:
  Redactor() : Rewriter(gateway_key_tree()) {}

  /// The secret of a kind behind a placeholder, as JSON.
  [[nodiscard]] const std::string* find(const std::string& placeholder, std::string_view kind) const {
    auto entry = secrets_.find(placeholder);
    return entry == secrets_.end() || entry->second.kind != kind_of(kind) ? nullptr : &entry->second.raw;
  }
  /// Whether two secrets got one placeholder, of which only one could be put back.
  [[nodiscard]] bool has_collision() const { return has_collision_; }

 protected:
  std::string secret_value(std::string_view raw, std::string_view kind, const std::string& /*field*/) override {
    return shows_nothing(raw) ? std::string(raw) : json::encode_string(remember(raw, kind));
  }

  std::string secret_name(const std::string& name, std::string_view kind, const std::string& /*field*/) override {
    bool is_note = name.starts_with(note_prefix);
    std::string hidden = is_note ? name.substr(note_prefix.size()) : name;
    std::string raw = json::encode_string(hidden);
    if (shows_nothing(raw)) return name;
    return (is_note ? std::string(note_prefix) : "") + remember(raw, is_note ? note_prefix : kind);
  }

  std::string open_value(std::string_view raw, const std::string& /*field*/) override { return std::string(raw); }

 private:
  struct Hidden {
    std::string kind;
    std::string raw;
  };

  std::string remember(std::string_view raw, std::string_view place) {
    std::string_view kind = kind_of(place);
    std::string placeholder = placeholder_of(raw, kind);
    auto [entry, is_new] = secrets_.try_emplace(placeholder, Hidden{std::string(kind), std::string(raw)});
    has_collision_ = has_collision_ || (!is_new && (entry->second.raw != raw || entry->second.kind != kind));
    return placeholder;
  }

  std::map<std::string, Hidden, std::less<>> secrets_;
  bool has_collision_ = false;
};

/// Puts secrets back, and keeps the first thing that was wrong.
class Restorer final : public Rewriter {
 public:
  explicit Restorer(const Redactor& secrets) : Rewriter(gateway_key_tree()), secrets_(secrets) {}

  [[nodiscard]] const std::optional<Error>& error() const { return error_; }

 protected:
  std::string secret_value(std::string_view raw, std::string_view kind, const std::string& field) override {
    std::optional<std::string> text = json::decode_string(raw);
    if (!text || !text->starts_with(placeholder_start)) return std::string(raw);
    const std::string* secret = secrets_.find(*text, kind);
    return secret != nullptr ? *secret : unknown(raw, field);
  }

  std::string secret_name(const std::string& name, std::string_view kind, const std::string& field) override {
    bool is_note = name.starts_with(note_prefix);
    std::string shown = is_note ? name.substr(note_prefix.size()) : name;
    if (!shown.starts_with(placeholder_start)) return name;
    const std::string* secret = secrets_.find(shown, is_note ? note_prefix : kind);
    if (secret == nullptr) return unknown(name, field);
    std::string found = json::decode_string(*secret).value_or("");
    return is_note ? std::string(note_prefix) + found : found;
  }

  std::string open_value(std::string_view raw, const std::string& field) override {
    std::optional<std::string> text = json::decode_string(raw);
    if (text && text->starts_with("[redacted:") && !error_) {
      error_ = Error{ErrorCode::invalid_argument,
                     fmt::format("{}: stands for a secret that this field would show; write the value itself", field)};
    }
    return std::string(raw);
  }

 private:
  std::string unknown(std::string_view raw, const std::string& field) {
    if (!error_) {
      error_ = Error{ErrorCode::invalid_argument,
                     fmt::format("{}: the placeholder stands for no secret of this field in the present configuration; "
                                 "write the secret, a reference to it, or read the configuration again",
                                 field)};
    }
    return std::string(raw);
  }

  const Redactor& secrets_;
  std::optional<Error> error_;
};

// The same text for the same meaning: without notes and nulls, members in the order of their names.
std::string canonical(std::string_view raw) {
  if (json::is_object(raw)) {
    std::map<std::string, std::string> members;
    for (const json::Member& member : json::parse_object(raw, document_limits).value_or(std::vector<json::Member>())) {
      if (member.key.starts_with(note_prefix) || json::is_null(member.value)) continue;
      members[member.key] = canonical(member.value);
    }
    std::string text = "{";
    for (const auto& [name, value] : members) {
      json::append_string(text, name);
      text += ':' + value + ',';
    }
    return text + '}';
  }
  if (json::is_array(raw)) {
    std::string text = "[";
    for (std::string_view element : json::parse_array(raw, document_limits).value_or(std::vector<std::string_view>())) {
      text += canonical(element) + ',';
    }
    return text + ']';
  }
  std::optional<std::string> text = json::decode_string(raw);
  return text ? json::encode_string(*text) : std::string(raw);
}

using Fields = std::map<std::string, std::string, std::less<>>;

std::string shown(std::string_view name) {
  return escape_for_terminal(name.substr(0, 256));
}

// Members of a set of fields with their values; objects with open names are taken apart.
Fields fields_of(std::string_view document) {
  Fields fields;
  const KeyTree& keys = gateway_key_tree();
  for (const json::Member& member :
       json::parse_object(document, document_limits).value_or(std::vector<json::Member>())) {
    if (member.key.starts_with(note_prefix) || json::is_null(member.value)) continue;
    auto key = keys.children.find(member.key);
    bool names_are_secret = key == keys.children.end() || key->second.info.secret_names;
    if (!json::is_object(member.value) || names_are_secret) {
      fields[shown(member.key)] = canonical(member.value);
      continue;
    }
    for (const json::Member& inner :
         json::parse_object(member.value, document_limits).value_or(std::vector<json::Member>())) {
      if (inner.key.starts_with(note_prefix) || json::is_null(inner.value)) continue;
      fields[shown(member.key) + "." + shown(inner.key)] = canonical(inner.value);
    }
  }
  return fields;
}

}  // namespace

Result<std::string> redact(std::string_view text) {
  std::string_view document = TRY(find_document(text));
  return Redactor().rewrite(document);
}

Result<std::string> restore(std::string_view edited, std::string_view current) {
  std::string_view edited_document = TRY(find_document(edited));
  std::string_view current_document = TRY(find_document(current));
  Redactor secrets;
  secrets.rewrite(current_document);
  if (secrets.has_collision()) {
    return fail(ErrorCode::internal,
                "two secrets have one placeholder; restart the gateway and read the "
                "configuration again");
  }
  Restorer restorer(secrets);
  std::string restored = restorer.rewrite(edited_document);
  if (restorer.error()) return std::unexpected(*restorer.error());
  // Two placeholders of one secret, or a placeholder next to the secret itself, would be one member twice.
  TRY(find_document(restored));
  return restored;
}

Result<std::vector<std::string>> changed_fields(std::string_view old_text, std::string_view new_text) {
  std::string_view old_document = TRY(find_document(old_text));
  std::string_view new_document = TRY(find_document(new_text));
  Fields before = fields_of(old_document);
  Fields after = fields_of(new_document);
  std::set<std::string> changed;
  for (const auto& [field, value] : before) {
    auto other = after.find(field);
    if (other == after.end() || other->second != value) changed.insert(field);
  }
  for (const auto& [field, value] : after) {
    if (!before.contains(field)) changed.insert(field);
  }
  return std::vector<std::string>(changed.begin(), changed.end());
}

}  // namespace hive::config
