#include "net/http/server_state.h"

#include <algorithm>

#include "net/http/shard.h"

namespace hive::net::http {

// Here, where a Shard is complete.
ServerState::ServerState(ServerOptions server_options, Handler request_handler)
    : options(std::move(server_options)),
      handler(std::move(request_handler)),
      parser_limits{.max_header_bytes = options.max_header_bytes,
                    .max_target_bytes = std::min<std::size_t>(8192, options.max_header_bytes),
                    .max_body_bytes = options.max_body_bytes},
      limits(std::make_shared<ConnectionLimits>(options.max_connections, options.max_connections_per_source)) {}

ServerState::~ServerState() = default;

}  // namespace hive::net::http
