#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace hive::priv {

/// Why a request was not done. The set is fixed and says nothing about the host that the caller did not send.
enum class Code {
  bad_request,        ///< not a request of the protocol, or a value that can never be right
  unknown_op,         ///< there is no such operation
  denied,             ///< this peer may not do that
  no_such_container,  ///< there is no configuration of that container
  busy,               ///< the container runs, or another request for it is at work; later may succeed
  unsafe_path,        ///< a link, a mount or a wrong owner stands in the way
  limit_reached,      ///< a bound on size, count, depth or time
  io_error,           ///< the operating system said no; the journal says why
  internal,           ///< a mistake of ours
};

std::string_view to_string(Code code);

/// The failure arm of an operation. The caller gets `code` and `message`; `detail` goes to the host's journal alone,
/// because it may name paths and errors of the host.
struct Refusal {
  Code code = Code::internal;
  std::string message;
  std::string detail;

  Refusal(Code refusal_code, std::string public_message, std::string private_detail = {})
      : code(refusal_code), message(std::move(public_message)), detail(std::move(private_detail)) {}
  /// A failure of the host: its text becomes the detail, and the caller gets the fixed text of its code.
  Refusal(Error error);  // NOLINT(google-explicit-constructor): lets TRY pass a Result's error on
};

template <class T>
using Outcome = std::expected<T, Refusal>;

/// A refusal that names what the caller sent.
template <class... Args>
std::unexpected<Refusal> refuse(Code code, fmt::format_string<Args...> format, Args&&... args) {
  return std::unexpected(Refusal(code, fmt::format(format, std::forward<Args>(args)...)));
}

}  // namespace hive::priv

namespace hive::detail {
/// Lets TRY take an Outcome as it takes a Result.
template <class T>
T unwrap(std::expected<T, priv::Refusal>&& outcome) {
  if constexpr (std::is_void_v<T>) {
    return;
  } else {
    return *std::move(outcome);
  }
}
}  // namespace hive::detail
