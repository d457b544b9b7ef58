#pragma once

#include <string>
#include <string_view>

#include "gateway/upstreams/connection.h"
#include "gateway/upstreams/transport.h"
#include "net/http/client.h"

/// Private to this room: what the two transports over HTTP have in common.
namespace hive::upstreams {

/// A request to the upstream with its credentials and configured headers, those that the protocol owns left out.
net::http::RequestOptions make_request(const ConnectionOptions& options, std::string_view method, std::string url);
/// The same for a JSON-RPC message.
net::http::RequestOptions make_post(const ConnectionOptions& options, std::string url, std::string_view text);

/// The media type of an answer, without parameters, in lower case.
std::string media_type(const net::http::ClientResponse& head);

/// What an answer with an error status says about the request that it refuses. `body` is what came with it.
RequestFailure failure_of_status(unsigned status, std::string_view body);
/// What a failed exchange says about its request.
RequestFailure failure_of_exchange(const Error& error);

}  // namespace hive::upstreams
