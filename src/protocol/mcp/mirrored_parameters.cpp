#include <algorithm>
#include <array>
#include <span>
#include <utility>

#include "base/strings.h"
#include "protocol/mcp/http_headers.h"

namespace hive::mcp {

namespace {

using Members = std::vector<json::Member>;

constexpr std::string_view annotation = "x-mcp-header";
constexpr std::size_t max_mirrored = 64;
constexpr std::int64_t max_safe_integer = (std::int64_t{1} << 53) - 1;

// Where JSON Schema 2020-12 (and draft 7) has schemas inside schemas, apart from "properties". An annotation there is
// an error; the same word inside "default", "enum" or "examples" is only data.
constexpr std::array<std::string_view, 12> one_schema = {"additionalItems",
                                                         "additionalProperties",
                                                         "contains",
                                                         "contentSchema",
                                                         "else",
                                                         "if",
                                                         "items",
                                                         "not",
                                                         "propertyNames",
                                                         "then",
                                                         "unevaluatedItems",
                                                         "unevaluatedProperties"};
constexpr std::array<std::string_view, 5> list_of_schemas = {"allOf", "anyOf", "items", "oneOf", "prefixItems"};
constexpr std::array<std::string_view, 5> named_schemas = {"$defs", "definitions", "dependencies", "dependentSchemas",
                                                           "patternProperties"};

bool is_one_of(std::span<const std::string_view> words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

bool is_token(std::string_view text) {
  constexpr std::string_view others = "!#$%&'*+-.^_`|~";
  return !text.empty() && std::ranges::all_of(text, [&](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || others.contains(c);
  });
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + 'a' - 'A');
  }
  return result;
}

// Gathers the annotations of a schema and of all inside it.
class Walker {
 public:
  Result<void> walk(std::string_view raw_schema, bool is_reachable) {
    if (!json::is_object(raw_schema)) return {};
    Members members = TRY(json::parse_object(raw_schema, message_limits));
    if (auto header = json::find(members, annotation)) TRY(add(*header, members, is_reachable));
    for (const json::Member& member : members) {
      if (member.key == "properties") TRY(walk_properties(member.value, is_reachable));
      if (is_one_of(one_schema, member.key)) TRY(walk(member.value, false));
      if (is_one_of(list_of_schemas, member.key) && json::is_array(member.value)) {
        std::vector<std::string_view> elements = TRY(json::parse_array(member.value, message_limits));
        for (std::string_view element : elements)
          TRY(walk(element, false));
      }
      if (is_one_of(named_schemas, member.key) && json::is_object(member.value)) {
        Members schemas = TRY(json::parse_object(member.value, message_limits));
        for (const json::Member& named : schemas)
          TRY(walk(named.value, false));
      }
    }
    return {};
  }

  std::vector<MirroredParameter> take() { return std::move(found_); }

 private:
  Result<void> walk_properties(std::string_view raw, bool is_reachable) {
    if (!json::is_object(raw)) return {};
    Members properties = TRY(json::parse_object(raw, message_limits));
    for (json::Member& property : properties) {
      path_.push_back(std::move(property.key));
      TRY(walk(property.value, is_reachable));
      path_.pop_back();
    }
    return {};
  }

  Result<void> add(std::string_view raw_header, const Members& schema, bool is_reachable) {
    if (!is_reachable || path_.empty())
      return fail(ErrorCode::invalid_argument, "x-mcp-header stands where no chain of \"properties\" leads");
    std::optional<std::string> header = json::decode_string(raw_header);
    if (!header || !is_token(*header))
      return fail(ErrorCode::invalid_argument, "x-mcp-header of {} is no name for an HTTP header", quote(path_.back()));
    std::optional<std::string> type = json::decode_string(json::find(schema, "type").value_or(""));
    if (!type || (*type != "string" && *type != "integer" && *type != "boolean"))
      return fail(ErrorCode::invalid_argument, "x-mcp-header of {} needs the type string, integer or boolean",
                  quote(path_.back()));
    for (const MirroredParameter& other : found_) {
      if (lower(other.header) == lower(*header))
        return fail(ErrorCode::invalid_argument, "x-mcp-header {} stands at two parameters", quote(*header));
    }
    if (found_.size() == max_mirrored)
      return fail(ErrorCode::resource_exhausted, "more than {} parameters have x-mcp-header", max_mirrored);
    found_.push_back({.header = *std::move(header), .path = path_});
    return {};
  }

  std::vector<std::string> path_;
  std::vector<MirroredParameter> found_;
};

// "42", "-7", "42.0" as the digits that they mean; nullopt for other numbers and beyond what JavaScript holds exactly.
std::optional<std::int64_t> whole_number(std::string_view text) {
  std::size_t point = text.find('.');
  if (point != std::string_view::npos) {
    std::string_view fraction = text.substr(point + 1);
    if (fraction.empty() || fraction.find_first_not_of('0') != std::string_view::npos) return std::nullopt;
    text = text.substr(0, point);
  }
  std::optional<std::int64_t> value = parse_int64(text);
  if (!value || *value > max_safe_integer || *value < -max_safe_integer) return std::nullopt;
  return value;
}

// What stands at the path; nullopt if nothing, or null.
std::optional<std::string_view> value_at(const Members& arguments, std::span<const std::string> path) {
  std::optional<std::string_view> value = json::find(arguments, path.front());
  for (const std::string& key : path.subspan(1)) {
    if (!value || !json::is_object(*value)) return std::nullopt;
    Result<Members> members = json::parse_object(*value, message_limits);
    if (!members) return std::nullopt;
    value = json::find(*members, key);
  }
  return value && !json::is_null(*value) ? value : std::nullopt;
}

// The text of a value as a header carries it, before encoding.
std::optional<std::string> text_of(std::string_view raw) {
  if (json::is_string(raw)) return json::decode_string(raw);
  if (json::decode_boolean(raw)) return std::string(raw);
  if (std::optional<std::int64_t> number = whole_number(raw)) return std::to_string(*number);
  return std::nullopt;
}

bool is_same(std::string_view header, std::string_view raw) {
  if (json::is_string(raw) || json::decode_boolean(raw)) return text_of(raw) == header;
  std::optional<std::int64_t> number = whole_number(header);
  return number && number == whole_number(raw);
}

std::unexpected<Fault> mismatch(const Message& request, std::string message) {
  return std::unexpected(
      Fault{.code = header_mismatch_code, .message = std::move(message), .id = std::string(request.id)});
}

}  // namespace

Result<std::vector<MirroredParameter>> mirrored_parameters(std::string_view raw_input_schema) {
  // Nearly no schema has annotations; where the word does not occur, even in escapes, there is nothing to walk through.
  if (!raw_input_schema.contains(annotation) && !raw_input_schema.contains("\\u"))
    return std::vector<MirroredParameter>{};
  Walker walker;
  TRY(walker.walk(raw_input_schema, true));
  return walker.take();
}

std::expected<void, Fault> check_parameter_headers(const HeaderLookup& headers, const Message& request,
                                                   std::string_view raw_input_schema) {
  if (request.method != "tools/call") return {};
  Result<std::vector<MirroredParameter>> mirrored = mirrored_parameters(raw_input_schema);
  if (!mirrored) return mismatch(request, "the tool's input schema: " + mirrored.error().message);
  if (mirrored->empty()) return {};

  // Arguments that are no object are for the tool to refuse.
  Members params = json::parse_object(request.params, message_limits).value_or(Members{});
  std::string_view raw_arguments = json::find(params, "arguments").value_or("{}");
  Members arguments = json::parse_object(raw_arguments, message_limits).value_or(Members{});
  for (const MirroredParameter& parameter : *mirrored) {
    const std::string name = "Mcp-Param-" + parameter.header;
    std::optional<std::string_view> header = headers(lower(name));
    std::optional<std::string_view> value = value_at(arguments, parameter.path);
    if (!header && !value) continue;
    if (!value) return mismatch(request, fmt::format("the header {} has no counterpart in the arguments", name));
    if (!header) return mismatch(request, fmt::format("the header {} is missing or repeated", name));
    std::optional<std::string> decoded = decode_header_value(*header);
    if (!decoded)
      return mismatch(request, fmt::format("the header {} is neither plain nor valid Base64 of UTF-8", name));
    if (!is_same(*decoded, *value))
      return mismatch(request, fmt::format("the header {} is not what the arguments say", name));
  }
  return {};
}

Result<std::vector<Header>> parameter_headers(std::string_view raw_input_schema, std::string_view raw_arguments) {
  std::vector<MirroredParameter> mirrored = TRY(mirrored_parameters(raw_input_schema));
  std::vector<Header> headers;
  if (mirrored.empty()) return headers;
  Members arguments = json::parse_object(raw_arguments, message_limits).value_or(Members{});
  for (const MirroredParameter& parameter : mirrored) {
    std::optional<std::string_view> value = value_at(arguments, parameter.path);
    if (!value) continue;
    std::optional<std::string> text = text_of(*value);
    if (!text)
      return fail(ErrorCode::invalid_argument,
                  "{} must be a string, a boolean or an integer within 2^53: it travels in a header",
                  quote(parameter.path.back()));
    headers.push_back({.name = "Mcp-Param-" + parameter.header, .value = encode_header_value(*text)});
  }
  return headers;
}

}  // namespace hive::mcp
