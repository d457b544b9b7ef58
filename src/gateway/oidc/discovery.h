#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "gateway/oidc/jwks.h"

namespace hive::oidc {

/// Gets the body of a URL's answer, which must have status 200. Blocks; gives up when the descriptor becomes readable.
using Fetch = std::function<Result<std::string>(const std::string& url, int cancel_fd)>;

/// Over HTTP, with the system's store or `ca_certificate_path`, without redirects, in 5 s, at most max_key_set_bytes.
Fetch http_fetch(std::string ca_certificate_path);

/// The issuer's keys, by way of its discovery document (OpenID Connect Discovery 1.0, section 4), which must name this
/// issuer exactly. The keys come over https, or over http when the issuer itself is http on this machine. Blocks.
Result<std::shared_ptr<const KeySet>> fetch_keys(const std::string& issuer, const Fetch& fetch, int cancel_fd);

}  // namespace hive::oidc
