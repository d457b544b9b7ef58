#include "cli/call_arguments.h"

#include <algorithm>
#include <vector>

#include "base/strings.h"
#include "base/utf8.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr size_t max_quoted_bytes = 200;
constexpr json::Limits argument_limits{.max_bytes = size_t{1} << 20, .max_depth = 32, .max_values = 100'000};

enum class ValueType { any, string, array_of_any, array_of_string };

struct Argument {
  std::string key;
  ValueType type = ValueType::any;
  std::vector<std::string> values;  ///< raw JSON
};

struct Word {
  std::string_view key;
  std::string_view value;
  bool is_json = false;
};

bool has_type(std::string_view schema, std::string_view type) {
  auto members = json::parse_object(schema, argument_limits);
  if (!members) return false;
  auto value = json::find(*members, "type");
  return value && json::decode_string(*value) == type;
}

/// What the schema says about `key`; any when it says nothing that is understood here.
ValueType type_of(std::string_view key, std::string_view input_schema) {
  auto schema = json::parse_object(input_schema, argument_limits);
  if (!schema) return ValueType::any;
  auto properties = json::find(*schema, "properties");
  if (!properties) return ValueType::any;
  auto members = json::parse_object(*properties, argument_limits);
  if (!members) return ValueType::any;
  auto property = json::find(*members, key);
  if (!property) return ValueType::any;
  if (has_type(*property, "string")) return ValueType::string;
  if (!has_type(*property, "array")) return ValueType::any;
  auto array = json::parse_object(*property, argument_limits);
  auto items = array ? json::find(*array, "items") : std::nullopt;
  return items && has_type(*items, "string") ? ValueType::array_of_string : ValueType::array_of_any;
}

bool is_plain_json(std::string_view text) {
  return !text.empty() && text.front() != '"' && trim(text) == text &&
         json::validate(text, argument_limits).has_value();
}

std::string typed_value(std::string_view text, ValueType type) {
  bool stays_text = type == ValueType::string || (type == ValueType::array_of_string && !text.starts_with('['));
  return !stays_text && is_plain_json(text) ? std::string(text) : json::encode_string(text);
}

Result<Word> parse_word(std::string_view word) {
  size_t equals = word.find('=');
  if (equals == std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "argument {}: not of the form key=value or key:=json",
                quote_briefly(word));
  }
  bool is_json = equals > 0 && word[equals - 1] == ':';
  Word parsed{word.substr(0, is_json ? equals - 1 : equals), word.substr(equals + 1), is_json};
  if (parsed.key.empty()) {
    return fail(ErrorCode::invalid_argument, "argument {}: the key before \"=\" is empty", quote_briefly(word));
  }
  if (!is_json) return parsed;
  if (auto valid = json::validate(parsed.value, argument_limits); !valid) {
    return fail(ErrorCode::invalid_argument, "argument {}: what follows \":=\" is not JSON: {}",
                quote_briefly(parsed.key), valid.error().message);
  }
  return parsed;
}

std::string value_of(const Argument& argument) {
  bool wants_array = argument.type == ValueType::array_of_any || argument.type == ValueType::array_of_string;
  if (argument.values.size() == 1 && (!wants_array || json::is_array(argument.values.front()))) {
    return argument.values.front();
  }
  return "[" + join(argument.values, ",") + "]";
}

}  // namespace

Result<std::string> call_arguments(std::string_view base, std::span<const std::string> words,
                                   std::string_view input_schema) {
  if (auto valid = json::validate(base, argument_limits); !valid) {
    return std::unexpected(with_context(valid.error(), "--arguments: not valid JSON"));
  }
  if (!json::is_object(base)) {
    return fail(ErrorCode::invalid_argument, "--arguments: must be a JSON object, such as {{\"name\": \"uptime\"}}");
  }
  if (words.empty()) return std::string(base);

  std::vector<json::Member> members = TRY(json::parse_object(base, argument_limits));
  std::vector<Argument> arguments;
  for (const std::string& word : words) {
    Word parsed = TRY(parse_word(word));
    if (json::find(members, parsed.key)) {
      return fail(ErrorCode::invalid_argument, "argument {}: given both in --arguments and as key=value",
                  quote_briefly(parsed.key));
    }
    auto argument = std::ranges::find(arguments, parsed.key, &Argument::key);
    if (argument == arguments.end()) {
      arguments.push_back({std::string(parsed.key), type_of(parsed.key, input_schema), {}});
      argument = arguments.end() - 1;
    }
    if (parsed.is_json && argument->values.empty()) argument->type = ValueType::any;
    argument->values.push_back(parsed.is_json ? std::string(parsed.value) : typed_value(parsed.value, argument->type));
  }
  std::string object = "{";
  auto add = [&object](std::string_view key, std::string_view value) {
    if (object.size() > 1) object += ',';
    json::append_string(object, key);
    object += ':';
    object += value;
  };
  for (const json::Member& member : members)
    add(member.key, member.value);
  for (const Argument& argument : arguments) {
    add(argument.key, value_of(argument));
  }
  object += '}';
  return object;
}

bool needs_schema(std::span<const std::string> words) {
  return std::ranges::any_of(words, [](const std::string& word) {
    auto parsed = parse_word(word);
    return parsed && !parsed->is_json;
  });
}

Result<void> check_argument_names(std::string_view arguments, std::string_view input_schema) {
  auto schema = json::parse_object(input_schema, argument_limits);
  if (!schema) return {};  // a tool that declares nothing takes anything
  std::vector<json::Member> given = TRY(json::parse_object(arguments, argument_limits));
  auto additional = json::find(*schema, "additionalProperties");
  bool admits_others = (additional && *additional != "false") || json::find(*schema, "patternProperties");
  auto properties = json::find(*schema, "properties");
  auto known = properties ? json::parse_object(*properties, argument_limits)
                          : std::unexpected(Error{ErrorCode::not_found, "no properties"});
  if (known && !admits_others) {
    std::vector<std::string_view> names;
    for (const json::Member& property : *known)
      names.push_back(property.key);
    for (const json::Member& member : given) {
      if (std::ranges::find(names, member.key) != names.end()) continue;
      auto nearest = nearest_name(member.key, names);
      return fail(ErrorCode::invalid_argument, "unknown argument {}{}", quote_briefly(member.key),
                  nearest ? "; did you mean " + quote_briefly(*nearest) + "?" : "");
    }
  }
  auto required = json::find(*schema, "required");
  auto required_names = required && json::is_array(*required)
                            ? json::parse_array(*required, argument_limits)
                            : std::unexpected(Error{ErrorCode::not_found, "nothing is required"});
  if (!required_names) return {};
  for (std::string_view raw : *required_names) {
    std::optional<std::string> name = json::decode_string(raw);
    if (name && !json::find(given, *name)) {
      return fail(ErrorCode::invalid_argument, "the argument {} is missing", quote_briefly(*name));
    }
  }
  return {};
}

std::string quote_briefly(std::string_view word) {
  std::string_view shown = utf8::truncate(word, max_quoted_bytes);
  return quote(shown) + (shown.size() < word.size() ? "..." : "");
}

}  // namespace hive::cli
