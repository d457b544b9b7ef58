#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "priv/refusal.h"

/// One request is one JSON object on one line; its "op" says what is wanted. Parsing looks at the form alone: known
/// keys, types, sizes. What the values may be is decided where they are used.
namespace hive::priv {

constexpr size_t max_request_bytes = size_t{64} << 10;  ///< of a line, without its end
constexpr size_t max_request_depth = 16;
constexpr size_t max_binds = 64;

/// A folder of the host that the guest sees.
struct Bind {
  std::string host_path;
  std::string container_path;
  bool read_only = false;
};

/// The network of a container: a port of its own on a bridge of the host.
struct Isolation {
  std::string bridge;
  std::string gateway_ip;
};

struct PingRequest {};
struct WriteFlagsRequest {
  std::string container;
  std::vector<Bind> binds;
  std::optional<Isolation> isolation;
};
struct StatusRequest {
  std::string container;
};
struct StartRequest {
  std::string container;
};
struct StopRequest {
  std::string container;
};
struct ListSalvagesRequest {
  std::string container;
};
struct JanitorRequest {
  bool remove = false;
};

using Request = std::variant<PingRequest, WriteFlagsRequest, StatusRequest, StartRequest, StopRequest,
                             ListSalvagesRequest, JanitorRequest>;

/// Who may send a request.
enum class Permission {
  peer,  ///< everybody who may use the socket
  root,  ///< root alone
};

/// A row of the table of permitted requests: what isn't here can't be asked.
struct Operation {
  std::string_view name;
  Outcome<Request> (*parse)(std::string_view line);
  Permission (*needs)(const Request& request);
};

/// The operation of a line, and the parsed request.
struct ParsedRequest {
  const Operation* operation = nullptr;
  Request request;
};

/// Reads one line without its end.
Outcome<ParsedRequest> parse_request(std::string_view line);

/// The container that a request names; empty if it names none.
std::string_view container_of(const Request& request);

}  // namespace hive::priv
