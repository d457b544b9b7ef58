#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace hive {

/// What kind of failure an Error is. Callers branch on this; people read the message.
enum class ErrorCode {
  invalid_argument,    ///< input that can never be right
  not_found,           ///< the named thing does not exist
  already_exists,      ///< the named thing exists and must not be replaced
  permission_denied,   ///< policy or the operating system says no
  unavailable,         ///< a peer or service cannot be reached now
  timed_out,           ///< a deadline passed
  cancelled,           ///< the caller withdrew the request
  resource_exhausted,  ///< a limit on size, count or rate was reached
  corrupt,             ///< stored or received data fails its own checks
  io,                  ///< the operating system reported an input/output error
  internal,            ///< a mistake of ours
};

/// The lower-case name of a code, as it appears in JSON and logs.
std::string_view to_string(ErrorCode code);

/// An expected failure: a code to branch on and one line that names the file, field or peer and, where there is one,
/// the remedy.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;

  bool operator==(const Error&) const = default;
};

/// A value or an Error. Exceptions do not cross a room's border.
template <class T>
using Result = std::expected<T, Error>;

/// Builds the failure arm of a Result; the message is formatted with fmt.
template <class... Args>
std::unexpected<Error> fail(ErrorCode code, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Error{code, fmt::format(format, std::forward<Args>(args)...)});
}

/// Appends the text of errno value `error_number` to a message about a system call: "open /x: No such file or
/// directory".
Error system_error(int error_number, std::string_view what);

/// Puts context in front of an error's message: "context: message".
Error with_context(Error error, std::string_view context);

namespace detail {
template <class T>
T unwrap(std::expected<T, Error>&& result) {
  if constexpr (std::is_void_v<T>) {
    return;
  } else {
    return *std::move(result);
  }
}
}  // namespace detail

}  // namespace hive

/// Evaluates a Result; returns its error from the enclosing function, otherwise yields its value.
#define TRY(...)                                             \
  __extension__({                                            \
    auto&& try_result = (__VA_ARGS__);                       \
    if (!try_result.has_value()) [[unlikely]] {              \
      return std::unexpected(std::move(try_result).error()); \
    }                                                        \
    ::hive::detail::unwrap(std::move(try_result));           \
  })

/// The same, with context put in front of the message.
#define TRY_CONTEXT(context, ...)                                                           \
  __extension__({                                                                           \
    auto&& try_result = (__VA_ARGS__);                                                      \
    if (!try_result.has_value()) [[unlikely]] {                                             \
      return std::unexpected(::hive::with_context(std::move(try_result).error(), context)); \
    }                                                                                       \
    ::hive::detail::unwrap(std::move(try_result));                                          \
  })
