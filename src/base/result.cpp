#include "base/result.h"

#include <cerrno>
#include <system_error>

namespace hive {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::already_exists:
      return "already_exists";
    case ErrorCode::permission_denied:
      return "permission_denied";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::timed_out:
      return "timed_out";
    case ErrorCode::cancelled:
      return "cancelled";
    case ErrorCode::resource_exhausted:
      return "resource_exhausted";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::io:
      return "io";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
}

namespace {

ErrorCode code_of(int error_number) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return ErrorCode::not_found;
    case EACCES:
    case EPERM:
    case ELOOP:
      return ErrorCode::permission_denied;
    case EEXIST:
      return ErrorCode::already_exists;
    case EMFILE:
    case ENFILE:
    case ENOMEM:
    case ENOSPC:
      return ErrorCode::resource_exhausted;
    case ECONNREFUSED:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ECONNRESET:
    case EPIPE:
      return ErrorCode::unavailable;
    case ETIMEDOUT:
      return ErrorCode::timed_out;
    default:
      return ErrorCode::io;
  }
}

}  // namespace

Error system_error(int error_number, std::string_view what) {
  return Error{code_of(error_number), fmt::format("{}: {}", what, std::generic_category().message(error_number))};
}

Error with_context(Error error, std::string_view context) {
  error.message = fmt::format("{}: {}", context, error.message);
  return error;
}

}  // namespace hive
