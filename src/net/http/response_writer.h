#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "net/http/message.h"
#include "net/http/request_parser.h"

namespace hive::net::http {

/// How the body of a response is delimited.
enum class BodyFraming { content_length, chunked, until_close };

struct HeadOptions {
  bool keep_alive = true;
  bool say_keep_alive = false;  ///< HTTP/1.0 must be told
  BodyFraming framing = BodyFraming::content_length;
  std::size_t content_length = 0;
};

/// Appends status line and header fields with the final empty line. Fields of `defaults` stand unless the response sets
/// the same one; control characters in names and values become blanks, so that no value can begin a new line.
void append_head(std::string& out, const Response& response, const Headers& defaults, const HeadOptions& options);

/// Appends one chunk (RFC 9112 section 7.1) around a piece that is not empty.
void append_chunk(std::string& out, std::string_view piece);

/// Whether a response with this status has no body at all (RFC 9110 section 6.4.1).
[[nodiscard]] bool has_no_body(unsigned status);

/// The standard phrase of a status, or "Status".
[[nodiscard]] std::string_view reason_phrase(unsigned status);

/// A refusal as application/problem+json (RFC 9457); without an id where nothing of a request is known.
Response problem_response(const Refusal& refusal, std::string_view request_id = {});

}  // namespace hive::net::http
