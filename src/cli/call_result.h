#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/exit_code.h"

namespace hive::cli {

/// A finished call, read from the JSON-RPC answer of POST /api/call.
struct CallAnswer {
  protocol::Outcome outcome = protocol::Outcome::success;
  std::string reason;              ///< the gateway's short code; empty on success
  std::vector<std::string> texts;  ///< of the text blocks, as they came
  std::string raw_result;          ///< JSON; empty for an error
  std::string raw_error;           ///< JSON of the JSON-RPC error; empty for a result
  std::string error_message;       ///< of that error
};

/// Reads the answer. The outcome is the gateway's own word from its headers (may be empty), then the agent's field,
/// then the text marker of old agents at the very start of the text.
Result<CallAnswer> parse_call_answer(std::string_view body, std::string_view outcome_header,
                                     std::string_view reason_header);

/// For people: JSON is indented, other text stays as it is, made safe for a terminal; ends in a newline.
std::string readable_text(const CallAnswer& answer);

/// For programs: the first text block, indented if it is JSON, otherwise as a JSON string; the whole result if there is
/// no block.
std::string json_output(const CallAnswer& answer);

/// For programs, a call that was no success: {"outcome":...,"reason":...,"message":...,"output":...}, where the output
/// is what json_output() gives, or null.
std::string json_failure(const CallAnswer& answer);
/// The same for a call that has no answer.
std::string json_failure(std::string_view outcome, std::string_view reason, std::string_view message);

/// One line that says why it was no success, for standard error.
std::string reason_line(const CallAnswer& answer);

/// Remote text with line breaks kept and everything else that steers a terminal escaped.
std::string text_for_terminal(std::string_view text);

/// Keeps track of output that was printed while the call ran, so that the end prints only what is new.
class ProgressPrinter {
 public:
  /// Takes the raw params of notifications/progress; returns the text to print now.
  std::string take(std::string_view params);
  /// What of the final text was not printed yet. For text that does not go on where the output stopped (some was
  /// lost or cut), that is all of it, with a line in front that says so.
  [[nodiscard]] std::string rest_of(const CallAnswer& answer) const;
  [[nodiscard]] bool has_printed() const { return !printed_.empty(); }

 private:
  std::string printed_;  ///< as received
};

}  // namespace hive::cli
