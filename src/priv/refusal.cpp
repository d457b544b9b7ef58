#include "priv/refusal.h"

namespace hive::priv {

std::string_view to_string(Code code) {
  switch (code) {
    case Code::bad_request:
      return "bad_request";
    case Code::unknown_op:
      return "unknown_op";
    case Code::denied:
      return "denied";
    case Code::no_such_container:
      return "no_such_container";
    case Code::busy:
      return "busy";
    case Code::unsafe_path:
      return "unsafe_path";
    case Code::limit_reached:
      return "limit_reached";
    case Code::io_error:
      return "io_error";
    case Code::internal:
      return "internal";
  }
  return "internal";
}

namespace {

Code code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::permission_denied:
      return Code::unsafe_path;
    case ErrorCode::cancelled:
    case ErrorCode::unavailable:
      return Code::busy;
    case ErrorCode::resource_exhausted:
    case ErrorCode::timed_out:
      return Code::limit_reached;
    case ErrorCode::internal:
      return Code::internal;
    default:
      return Code::io_error;
  }
}

std::string_view public_text(Code code) {
  switch (code) {
    case Code::unsafe_path:
      return "a link, a mount or a wrong owner stands in the way; the journal of hive-priv on the host names it";
    case Code::busy:
      return "not now; send the request again";
    case Code::limit_reached:
      return "a limit was reached; the journal of hive-priv on the host names it";
    case Code::internal:
      return "a mistake of hive-priv; its journal on the host says more";
    default:
      return "the host could not do it; the journal of hive-priv on the host says why";
  }
}

}  // namespace

Refusal::Refusal(Error error)
    : code(code_of(error.code)), message(public_text(code)), detail(std::move(error.message)) {}

}  // namespace hive::priv
