// Headers of MCP requests: first line a header's value, second a tool's input schema, the rest its arguments. What we
// encode comes back as it was, and the headers that a client makes are those that a server expects.
#include <map>
#include <string>

#include "base/utf8.h"
#include "fuzz_target.h"
#include "protocol/mcp/http_headers.h"

namespace {

using namespace hive;

std::string_view take_line(std::string_view& text) {
  std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(text.size(), line.size() + 1));
  return line;
}

bool is_field_value(std::string_view value) {
  for (char c : value) {
    if ((c < ' ' || c > '~') && c != '\t') return false;
  }
  return true;
}

void check_value(std::string_view value) {
  (void)mcp::accepts(value, "text/event-stream");
  std::string encoded = mcp::encode_header_value(value);
  CHECK(is_field_value(encoded));
  if (utf8::is_valid(value)) CHECK(mcp::decode_header_value(encoded) == value);
  std::optional<std::string> decoded = mcp::decode_header_value(value);
  if (decoded) CHECK(utf8::is_valid(*decoded));
}

void check_mirror(std::string_view schema, std::string_view arguments) {
  std::string params = R"({"name":"t","arguments":)" + std::string(arguments) + "}";
  if (!json::validate(params) || !json::validate(schema)) return;
  mcp::Message request{.kind = mcp::MessageKind::request, .id = "1", .method = "tools/call", .params = params};
  std::map<std::string, std::string, std::less<>> headers;
  mcp::HeaderLookup lookup = [&](std::string_view name) -> std::optional<std::string_view> {
    auto found = headers.find(name);
    return found == headers.end() ? std::nullopt : std::optional<std::string_view>(found->second);
  };
  auto made = mcp::parameter_headers(schema, arguments);
  if (made) {
    for (const mcp::Header& header : *made) {
      CHECK(is_field_value(header.value));
      std::string name = header.name;
      for (char& c : name)
        c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 'a' - 'A') : c;
      CHECK(headers.emplace(name, header.value).second);
    }
  }
  CHECK(mcp::check_parameter_headers(lookup, request, schema).has_value() == made.has_value());
  for (auto& [name, value] : headers) {
    value += "+";
    CHECK(!mcp::check_parameter_headers(lookup, request, schema).has_value());
    break;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = fuzz::as_text(data, size);
  std::string_view value = take_line(text);
  std::string_view schema = take_line(text);
  check_value(value);
  check_mirror(schema, text);
  return 0;
}
