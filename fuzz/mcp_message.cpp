// One MCP message of anybody: never a crash, what is taken out of it is JSON again, and put together it says the same
// in one line. What is refused is answered with one line of JSON as well.
#include "fuzz_target.h"
#include "protocol/mcp/message.h"

namespace {

using namespace hive;

void check_line(std::string_view text) {
  CHECK(json::validate(text, {.max_bytes = text.size(), .max_values = text.size()}).has_value());
  CHECK(text.find_first_of("\r\n") == std::string_view::npos);
}

void check_fault(const mcp::Fault& fault) {
  CHECK(fault.http_status >= 400);
  check_line(mcp::encode_fault(fault));
}

void read_meta(const mcp::Message& message) {
  auto meta = mcp::parse_meta(message);
  if (!meta) return check_fault(meta.error());
  if (!meta->progress_token.empty()) check_line(meta->progress_token);
  if (auto revision = mcp::modern_revision(message, *meta); !revision) check_fault(revision.error());
}

std::string encode(const mcp::Message& message) {
  switch (message.kind) {
    case mcp::MessageKind::response:
      return mcp::encode_result(message.id, message.body);
    case mcp::MessageKind::error_response:
      return mcp::encode_error_body(message.id, message.body);
    default:
      return mcp::encode_request(message.id, message.method, message.params);
  }
}

void read(std::string_view text) {
  auto message = mcp::parse_message(text);
  if (!message) return check_fault(message.error());
  CHECK((message->kind == mcp::MessageKind::request) == (!message->id.empty() && !message->method.empty()));
  std::string encoded = encode(*message);
  check_line(encoded);
  auto again = mcp::parse_message(encoded);
  CHECK(again.has_value());
  CHECK(again->kind == message->kind && again->id == message->id && again->method == message->method);
  CHECK(mcp::id_key(again->id) == mcp::id_key(message->id));
  read_meta(*message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::string_view text = fuzz::as_text(data, size);
  read(text);
  if (!mcp::is_batch(text)) return 0;
  auto elements = mcp::split_batch(text);
  if (!elements) {
    check_fault(elements.error());
    return 0;
  }
  CHECK(!elements->empty() && elements->size() <= 64);
  for (std::string_view element : *elements)
    read(element);
  return 0;
}
