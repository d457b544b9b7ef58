#include <algorithm>

#include "gateway/surfaces/rest/configuration_store.h"
#include "gateway/surfaces/rest/endpoints.h"
#include "gateway/surfaces/rest/object_writer.h"

namespace hive::rest {

namespace {

/// The number of tokens, as the reference shows it beside the configuration. It is no setting.
constexpr std::string_view count_member = "tokens_count";

ConfigurationStore* store_of(const Context& context) {
  ConfigurationStore* store = context.services->dependencies.configuration;
  if (store == nullptr) context.refuse({503, "no_state", "this gateway cannot read or write its configuration"});
  return store;
}

/// A JSON object's text with one more member at its end.
std::string with_count(std::string text, std::size_t count) {
  std::size_t close = text.rfind('}');
  if (close == std::string::npos) return text;
  std::size_t last = text.find_last_not_of(" \t\r\n", close - 1);
  bool is_empty = last == std::string::npos || text[last] == '{';
  text.insert(last + 1, fmt::format("{}\n  \"{}\": {}", is_empty ? "" : ",", count_member, count));
  return text;
}

/// What GET showed can be sent back: the count is taken out again, and every other byte stays.
Result<std::string> without_count(const std::string& text) {
  std::vector<json::Member> members = TRY(json::parse_object(text, {.max_bytes = text.size()}));
  auto found = std::ranges::find(members, count_member, &json::Member::key);
  if (found == members.end()) return text;
  auto offset = [&](std::string_view part) { return static_cast<std::size_t>(part.data() - text.data()); };
  std::size_t end = offset(found->value) + found->value.size();
  std::size_t begin = 0;
  if (found == members.begin()) {
    begin = text.find('{') + 1;
    if (members.size() > 1) end = text.find(',', end) + 1;
  } else {
    std::string_view before = std::prev(found)->value;
    begin = offset(before) + before.size();
  }
  return text.substr(0, begin) + text.substr(end);
}

void refuse_change(const Context& context, const Error& error) {
  // All problems are told at once, in one line.
  std::string detail = error.message;
  for (std::size_t at = detail.find('\n'); at != std::string::npos; at = detail.find('\n', at))
    detail.replace(at, 1, "; ");
  switch (error.code) {
    case ErrorCode::invalid_argument:
      return context.refuse({400, "invalid_config", std::move(detail)});
    case ErrorCode::unavailable:
      return context.refuse({503, "unavailable", std::move(detail)});
    default:
      return context.refuse({500, "config_unwritable", std::move(detail)});
  }
}

std::string change_json(const ConfigurationStore::Change& change, std::size_t tokens) {
  std::string body = "{";
  ObjectWriter(body)
      .boolean("success", true)
      .texts("changed", change.changed)
      .texts("restart_required", change.restart_required)
      .raw("config", with_count(change.redacted, tokens));
  return body + "}\n";
}

std::size_t token_count(const Services& services) {
  return services.settings()->config->tokens.size();
}

}  // namespace

void get_configuration(const ContextPointer& context) {
  ConfigurationStore* store = store_of(*context);
  if (store == nullptr) return;
  context->services->dependencies.runtime.run_blocking([context, store] {
    Result<std::string> text = store->redacted();
    if (text) return context->respond_json(with_count(*std::move(text), token_count(*context->services)));
    context->refuse({500, "config_unreadable", "the configuration cannot be read: " + text.error().message});
  });
}

void post_configuration(const ContextPointer& context) {
  ConfigurationStore* store = store_of(*context);
  if (store == nullptr) return;
  Result<std::string> text = without_count(context->request->body);
  if (!text) {
    return context->refuse({400, "invalid_config", "the body is not a JSON object: " + text.error().message});
  }
  context->services->dependencies.runtime.run_blocking([context, store, text = *std::move(text)]() mutable {
    Result<ConfigurationStore::Change> change =
        store->replace(std::move(text), context->principal, context->request_id);
    if (!change) return refuse_change(*context, change.error());
    context->respond_json(change_json(*change, token_count(*context->services)));
  });
}

}  // namespace hive::rest
