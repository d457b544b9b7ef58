#include "net/http/server_state.h"

#include <algorithm>

#include "net/http/shard.h"

namespace hive::net::http {

namespace {

/// So many sources must join to use up the memory for bodies that are still arriving.
constexpr std::size_t body_budget_shares = 8;

std::size_t source_body_budget(const ServerOptions& options) {
  std::size_t one_body = std::min(options.max_body_bytes, options.max_buffered_body_bytes);
  return std::max(options.max_buffered_body_bytes / body_budget_shares, one_body);
}

}  // namespace

// Here, where a Shard is complete.
ServerState::ServerState(ServerOptions server_options, Handler request_handler)
    : options(std::move(server_options)),
      handler(std::move(request_handler)),
      parser_limits{.max_header_bytes = options.max_header_bytes,
                    .max_target_bytes = std::min<std::size_t>(8192, options.max_header_bytes),
                    .max_body_bytes = options.max_body_bytes},
      max_source_body_bytes(source_body_budget(options)),
      limits(std::make_shared<ConnectionLimits>(options.max_connections, options.max_connections_per_source)) {}

ServerState::~ServerState() = default;

}  // namespace hive::net::http
