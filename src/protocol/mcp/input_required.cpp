#include "protocol/mcp/edit.h"
#include "protocol/mcp/translation.h"

namespace hive::mcp {

namespace {

constexpr std::size_t max_requests = 64;

Result<InputRequest> parse_request(const json::Member& named) {
  std::vector<json::Member> members = edit::members_of(named.value);
  std::optional<std::string> method = json::decode_string(json::find(members, "method").value_or(""));
  std::string_view params = json::find(members, "params").value_or("{}");
  if (!method || method->empty() || !json::is_object(params))
    return fail(ErrorCode::invalid_argument, "an input request needs a method, and params that are an object");
  return InputRequest{.key = named.key, .method = *std::move(method), .params = std::string(params)};
}

}  // namespace

std::string_view capability_of(std::string_view server_request_method) {
  if (server_request_method == "elicitation/create") return "elicitation";
  if (server_request_method == "sampling/createMessage") return "sampling";
  if (server_request_method == "roots/list") return "roots";
  return {};
}

bool has_capability(std::string_view raw_capabilities, std::string_view capability) {
  std::optional<std::string_view> raw = json::find(edit::members_of(raw_capabilities), capability);
  return raw && json::is_object(*raw);
}

std::string encode_input_required(std::span<const InputRequest> requests, std::string_view request_state) {
  std::string out = R"({"resultType":"input_required")";
  if (!requests.empty()) {
    char separator = '{';
    out += R"(,"inputRequests":)";
    for (const InputRequest& request : requests) {
      out += separator;
      separator = ',';
      json::append_string(out, request.key);
      out += R"(:{"method":)";
      json::append_string(out, request.method);
      out += R"(,"params":)";
      out += request.params.empty() ? std::string_view("{}") : request.params;
      out += '}';
    }
    out += '}';
  }
  if (!request_state.empty()) {
    out += R"(,"requestState":)";
    json::append_string(out, request_state);
  }
  return out + '}';
}

Result<InputRequired> parse_input_required(std::string_view raw_result) {
  std::vector<json::Member> members = TRY(json::parse_object(raw_result, edit::limits_of(raw_result)));
  if (json::decode_string(json::find(members, "resultType").value_or("")) != "input_required")
    return fail(ErrorCode::invalid_argument, "the result does not ask for input");
  InputRequired input;
  std::optional<std::string_view> requests = json::find(members, "inputRequests");
  std::optional<std::string_view> state = json::find(members, "requestState");
  if (!requests && !state)
    return fail(ErrorCode::invalid_argument, "a result that asks for input needs inputRequests or requestState");
  if (state && !json::is_string(*state)) return fail(ErrorCode::invalid_argument, "requestState must be a string");
  input.request_state = state.value_or("");
  if (!requests) return input;
  if (!json::is_object(*requests)) return fail(ErrorCode::invalid_argument, "inputRequests must be an object");
  std::vector<json::Member> named_requests = edit::members_of(*requests);
  if (named_requests.size() > max_requests)
    return fail(ErrorCode::resource_exhausted, "inputRequests has more than {} requests", max_requests);
  for (const json::Member& named : named_requests)
    input.requests.push_back(TRY(parse_request(named)));
  return input;
}

}  // namespace hive::mcp
