#include <algorithm>
#include <iterator>

#include "protocol/mcp/message.h"

namespace hive::mcp {

namespace {

constexpr std::string_view separator_start = "\xe2\x80";  // of U+2028 and U+2029, and of much that is harmless

// The text with U+2028 and U+2029 as escapes: readers of lines such as Node's readline end a line there. Valid JSON has
// them in strings alone.
void append_without_separators(std::string& out, std::string_view raw) {
  std::size_t copied = 0;
  for (std::size_t at = raw.find(separator_start); at != std::string_view::npos;
       at = raw.find(separator_start, at + separator_start.size())) {
    char last = at + 2 < raw.size() ? raw[at + 2] : '\0';
    if (last != '\xa8' && last != '\xa9') continue;
    out += raw.substr(copied, at - copied);
    out += last == '\xa8' ? "\\u2028" : "\\u2029";
    copied = at + 3;
  }
  out += raw.substr(copied);
}

// Valid JSON has line breaks between tokens alone, where a space is as good.
void append_raw(std::string& out, std::string_view raw) {
  auto first = static_cast<std::ptrdiff_t>(out.size());
  append_without_separators(out, raw);
  for (char line_break : {'\n', '\r'}) {
    if (raw.contains(line_break)) std::replace(out.begin() + first, out.end(), line_break, ' ');
  }
}

std::string begin(std::string_view raw_id, std::size_t more_bytes) {
  std::string out;
  out.reserve(48 + raw_id.size() + more_bytes);
  out += R"({"jsonrpc":"2.0")";
  if (!raw_id.empty()) {
    out += R"(,"id":)";
    out += raw_id;
  }
  return out;
}

void append_call(std::string& out, std::string_view method, std::string_view raw_params) {
  out += R"(,"method":)";
  json::append_string(out, method);
  if (!raw_params.empty()) {
    out += R"(,"params":)";
    append_raw(out, raw_params);
  }
  out += '}';
}

}  // namespace

std::string encode_request(std::string_view raw_id, std::string_view method, std::string_view raw_params) {
  std::string out = begin(raw_id, method.size() + raw_params.size());
  append_call(out, method, raw_params);
  return out;
}

std::string encode_notification(std::string_view method, std::string_view raw_params) {
  return encode_request({}, method, raw_params);
}

std::string encode_result(std::string_view raw_id, std::string_view raw_result) {
  std::string out = begin(raw_id, raw_result.size());
  out += R"(,"result":)";
  append_raw(out, raw_result);
  out += '}';
  return out;
}

std::string encode_error(std::string_view raw_id, int code, std::string_view message, std::string_view raw_data) {
  std::string out = begin(raw_id, 48 + message.size() + raw_data.size());
  fmt::format_to(std::back_inserter(out), R"(,"error":{{"code":{},"message":)", code);
  json::append_string(out, message);
  if (!raw_data.empty()) {
    out += R"(,"data":)";
    append_raw(out, raw_data);
  }
  out += "}}";
  return out;
}

std::string encode_error_body(std::string_view raw_id, std::string_view raw_error) {
  std::string out = begin(raw_id, raw_error.size());
  out += R"(,"error":)";
  append_raw(out, raw_error);
  out += '}';
  return out;
}

std::string encode_fault(const Fault& fault) {
  return encode_error(fault.id, fault.code, fault.message, fault.data);
}

}  // namespace hive::mcp
