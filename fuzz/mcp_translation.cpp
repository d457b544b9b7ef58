// Answers of any MCP server for clients of any revision: the first byte chooses revision and method, the rest is the
// answer. What comes out is JSON, and translating it once more changes nothing.
#include <array>
#include <string>

#include "fuzz_target.h"
#include "protocol/mcp/questions.h"
#include "protocol/mcp/translation.h"

namespace {

using namespace hive;

constexpr std::array<std::string_view, 8> methods = {"tools/call",  "tools/list",     "prompts/list",
                                                     "prompts/get", "resources/list", "resources/read",
                                                     "initialize",  "server/discover"};

void check_json(std::string_view text) {
  CHECK(json::validate(text, {.max_bytes = text.size(), .max_depth = 128, .max_values = text.size()}).has_value());
}

void check_result(std::string_view raw, std::string_view method, mcp::Revision revision) {
  mcp::CacheHint hint{.time_to_live = std::chrono::milliseconds(5), .scope = mcp::CacheScope::shared};
  std::string adapted = mcp::adapt_result(raw, method, revision, R"({"name":"n","version":"1"})", hint);
  check_json(adapted);
  CHECK(json::is_object(adapted));
  CHECK(mcp::adapt_result(adapted, method, revision, R"({"name":"n","version":"1"})", hint) == adapted);
  if (json::is_object(raw)) CHECK(mcp::result_type(adapted) == mcp::result_type(raw));
}

void check_error(std::string_view raw, std::string_view method, mcp::Revision revision) {
  std::string adapted = mcp::adapt_error(raw, method, revision);
  check_json(adapted);
  CHECK(mcp::adapt_error(adapted, method, revision) == adapted);
  (void)mcp::http_status_of_error(adapted);
}

void check_input(std::string_view raw) {
  Result<mcp::InputRequired> input = mcp::parse_input_required(raw);
  if (!input) return;
  std::optional<std::string> state = json::decode_string(input->request_state);
  std::string encoded = mcp::encode_input_required(input->requests, state.value_or(""));
  check_json(encoded);
  if (input->requests.empty() && state.value_or("").empty()) return;
  Result<mcp::InputRequired> again = mcp::parse_input_required(encoded);
  CHECK(again.has_value() && again->requests.size() == input->requests.size());
}

void check_question(std::string_view raw, mcp::Revision revision) {
  for (std::string_view method : {"elicitation/create", "sampling/createMessage", "roots/list"}) {
    std::string adapted = mcp::adapt_question(raw, method, revision, "id");
    check_json(adapted);
    CHECK(mcp::adapt_question(adapted, method, revision, "other") == adapted);
    std::string missing = mcp::missing_capability(raw, method, raw);
    if (!missing.empty()) check_json(missing);
    CHECK(!mcp::missing_capability("{}", method, raw).empty());
  }
}

void check_name(std::string_view text) {
  std::string_view prefix = text.substr(0, text.find('\n'));
  std::string name = mcp::public_tool_name(prefix, text.substr(prefix.size()));
  CHECK(!name.empty() && name.size() <= 64);
  CHECK(name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/") ==
        std::string::npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  auto revisions = mcp::all_revisions();
  mcp::Revision revision = revisions[data[0] % revisions.size()];
  std::string_view method = methods[data[0] / revisions.size() % methods.size()];
  std::string_view raw = fuzz::as_text(data + 1, size - 1);
  check_name(raw);
  if (!json::validate(raw, mcp::message_limits)) return 0;
  // Without the white space around it, as it stands in a message.
  raw = raw.substr(raw.find_first_not_of(" \t\r\n"));
  check_result(raw, method, revision);
  check_error(raw, method, revision);
  check_input(raw);
  check_question(raw, revision);
  check_json(mcp::with_members(raw, std::array{mcp::MemberChange{"content", "[]"}, mcp::MemberChange{"own", ""}}));
  return 0;
}
