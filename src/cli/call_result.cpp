#include "cli/call_result.h"

#include "base/strings.h"
#include "cli/json_text.h"
#include "protocol/agent_protocol.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr size_t max_reason_bytes = 600;
constexpr std::string_view output_heading = "\nOutput:\n";

/// The answer is bounded by the size of the response; these keep hostile nesting away.
json::Limits limits_for(std::string_view text) {
  return {.max_bytes = text.size(), .max_depth = 128, .max_values = 5'000'000};
}

std::vector<std::string> text_blocks(std::string_view result) {
  std::vector<std::string> texts;
  auto members = json::parse_object(result, limits_for(result));
  auto content = members ? json::find(*members, "content") : std::nullopt;
  if (!content) return texts;
  auto blocks = json::parse_array(*content, limits_for(*content));
  if (!blocks) return texts;
  for (std::string_view block : *blocks) {
    auto fields = json::parse_object(block, limits_for(block));
    if (!fields) continue;
    auto text = json::find(*fields, "text");
    if (auto decoded = text ? json::decode_string(*text) : std::nullopt) texts.push_back(*std::move(decoded));
  }
  return texts;
}

bool is_json_document(std::string_view text) {
  return (json::is_object(text) || json::is_array(text)) && json::validate(text, limits_for(text)).has_value();
}

std::string with_final_newline(std::string text) {
  if (!text.empty() && !text.ends_with('\n')) text += '\n';
  return text;
}

std::string joined_texts(const CallAnswer& answer) {
  std::string whole;
  for (const std::string& text : answer.texts)
    whole += text;
  return whole;
}

std::string_view first_line(std::string_view text) {
  return trim(text.substr(0, text.find('\n')));
}

/// Why it was no success, in the words of the agent or the gateway.
std::string_view detail_of(const CallAnswer& answer) {
  if (!answer.error_message.empty() || answer.texts.empty()) return answer.error_message;
  std::string_view text = answer.texts.front();
  if (!text.starts_with(protocol::rejected_marker)) return "";
  return first_line(text.substr(protocol::rejected_marker.size()));
}

std::string failure_object(std::string_view outcome, std::string_view reason, std::string_view message,
                           std::string_view output) {
  std::string text = "{\"outcome\":" + json::encode_string(outcome);
  text += ",\"reason\":" + json::encode_string(reason);
  text += ",\"message\":" + json::encode_string(message);
  text += ",\"output\":";
  text += output.empty() ? "null" : output;
  return pretty_json(text + "}");
}

}  // namespace

Result<CallAnswer> parse_call_answer(std::string_view body, std::string_view outcome_header,
                                     std::string_view reason_header) {
  auto members = json::parse_object(body, limits_for(body));
  if (!members) return fail(ErrorCode::corrupt, "the gateway's answer is not JSON-RPC: {}", members.error().message);
  auto error = json::find(*members, "error");
  if (error && json::is_null(*error)) error.reset();
  auto result = json::find(*members, "result");
  CallAnswer answer;
  protocol::Verdict verdict;
  if (error) {
    answer.raw_error = *error;
    if (auto fields = json::parse_object(*error, limits_for(*error))) {
      auto message = json::find(*fields, "message");
      answer.error_message = message ? json::decode_string(*message).value_or("") : "";
    }
    verdict = protocol::classify_error(*error);
  } else if (result) {
    answer.raw_result = *result;
    answer.texts = text_blocks(*result);
    verdict = protocol::classify_result(*result);
  } else {
    return fail(ErrorCode::corrupt, "the gateway's answer has neither a result nor an error");
  }
  answer.outcome = verdict.outcome;
  answer.reason = verdict.reason;
  if (auto outcome = protocol::outcome_from_string(outcome_header)) {
    answer.outcome = *outcome;
    answer.reason = reason_header;
  }
  return answer;
}

std::string text_for_terminal(std::string_view text) {
  std::string safe;
  safe.reserve(text.size());
  while (!text.empty()) {
    // A carriage return in front of a line feed cannot hide anything, as one alone can.
    size_t end = text.find("\r\n");
    safe += escape_for_terminal(text.substr(0, end), true);
    if (end == std::string_view::npos) break;
    safe += '\n';
    text.remove_prefix(end + 2);
  }
  return safe;
}

std::string readable_text(const CallAnswer& answer) {
  if (answer.texts.empty()) return answer.raw_result.empty() ? "" : pretty_json(answer.raw_result);
  std::string text;
  for (const std::string& block : answer.texts)
    text += is_json_document(trim(block)) ? pretty_json(block) : with_final_newline(text_for_terminal(block));
  return text;
}

std::string json_output(const CallAnswer& answer) {
  if (answer.texts.empty()) return answer.raw_result.empty() ? "" : pretty_json(answer.raw_result);
  const std::string& text = answer.texts.front();
  if (json::validate(text, limits_for(text))) return pretty_json(text);
  return json_for_terminal(json::encode_string(text)) + "\n";
}

std::string json_failure(const CallAnswer& answer) {
  std::string output = json_output(answer);
  return failure_object(protocol::to_string(answer.outcome), answer.reason, detail_of(answer), trim(output));
}

std::string json_failure(std::string_view outcome, std::string_view reason, std::string_view message) {
  return failure_object(outcome, reason, message, "");
}

std::string reason_line(const CallAnswer& answer) {
  std::string_view what;
  switch (answer.outcome) {
    case protocol::Outcome::success:
      return "";
    case protocol::Outcome::denied:
      what = "denied, nothing ran";
      break;
    case protocol::Outcome::failure:
      what = "failed";
      break;
    case protocol::Outcome::cancelled:
      what = "cancelled";
      break;
    case protocol::Outcome::expired:
      what = "expired, it was never sent";
      break;
    case protocol::Outcome::unknown:
      what = "outcome unknown";
      break;
  }
  std::string_view detail = detail_of(answer);
  std::string line(what);
  if (!detail.empty()) {
    line += ": " + escape_for_terminal(first_line(detail).substr(0, max_reason_bytes));
  }
  if (!answer.reason.empty()) line += " (" + escape_for_terminal(answer.reason.substr(0, 64)) + ")";
  return line;
}

std::string ProgressPrinter::take(std::string_view params) {
  auto fields = json::parse_object(params, limits_for(params));
  auto message = fields ? json::find(*fields, "message") : std::nullopt;
  auto text = message ? json::decode_string(*message) : std::nullopt;
  if (!text) return "";
  printed_ += *text;
  return text_for_terminal(*text);
}

std::string ProgressPrinter::rest_of(const CallAnswer& answer) const {
  if (printed_.empty()) return readable_text(answer);
  std::string whole = joined_texts(answer);
  std::string_view output = whole;
  if (output.starts_with(protocol::rejected_marker)) {
    if (size_t at = output.find(output_heading); at != std::string_view::npos) {
      output.remove_prefix(at + output_heading.size());
    }
  }
  if (output.starts_with(printed_)) {
    std::string_view rest = output.substr(printed_.size());
    bool ends_line = rest.empty() ? printed_.ends_with('\n') : rest.ends_with('\n');
    return text_for_terminal(rest) + (ends_line ? "" : "\n");
  }
  return std::string(printed_.ends_with('\n') ? "" : "\n") +
         "[the output above is not complete; the whole result follows]\n" + readable_text(answer);
}

}  // namespace hive::cli
