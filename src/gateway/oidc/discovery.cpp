#include "gateway/oidc/discovery.h"

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include "base/strings.h"
#include "net/http/client.h"
#include "protocol/json.h"

namespace hive::oidc {

namespace {

constexpr std::chrono::seconds fetch_timeout(5);
constexpr json::Limits document_limits = {.max_bytes = max_key_set_bytes, .max_depth = 16, .max_values = 8192};

/// Whether keys may be taken from there.
bool is_safe_source(const std::string& url, bool issuer_is_local) {
  auto parsed = boost::urls::parse_uri(url);
  if (!parsed || parsed->has_userinfo()) return false;
  if (parsed->scheme_id() == boost::urls::scheme::https) return true;
  return issuer_is_local && parsed->scheme_id() == boost::urls::scheme::http &&
         net::http::is_loopback_host(std::string(parsed->encoded_host()));
}

}  // namespace

Fetch http_fetch(std::string ca_certificate_path) {
  return [ca = std::move(ca_certificate_path)](const std::string& url, int cancel_fd) -> Result<std::string> {
    net::http::ClientRequest request;
    request.url = url;
    request.headers = {{"Accept", "application/json"}};
    request.connect_timeout = fetch_timeout;
    request.timeout = fetch_timeout;
    request.max_response_bytes = max_key_set_bytes;
    request.ca_certificate_path = ca;
    request.cancel_fd = cancel_fd;
    net::http::ClientResponse response = TRY(net::http::perform(request));
    if (response.status != 200) {
      return fail(ErrorCode::unavailable, "{} answers with status {}", quote(url), response.status);
    }
    return std::move(response.body);
  };
}

Result<std::shared_ptr<const KeySet>> fetch_keys(const std::string& issuer, const Fetch& fetch, int cancel_fd) {
  std::string base = issuer.ends_with('/') ? issuer.substr(0, issuer.size() - 1) : issuer;
  std::string document = TRY(fetch(base + "/.well-known/openid-configuration", cancel_fd));
  auto members = TRY_CONTEXT("the discovery document", json::parse_object(document, document_limits));
  auto named = json::decode_string(json::find(members, "issuer").value_or(""));
  if (named != issuer) {
    return fail(ErrorCode::corrupt,
                "the discovery document is of the issuer {}, not {}; oidc_issuer must be the same, "
                "byte for byte",
                quote(named.value_or("").substr(0, 200)), quote(issuer));
  }
  auto keys_url = json::decode_string(json::find(members, "jwks_uri").value_or(""));
  if (!keys_url) return fail(ErrorCode::corrupt, "the discovery document names no jwks_uri");
  if (!is_safe_source(*keys_url, issuer.starts_with("http://"))) {
    return fail(ErrorCode::corrupt, "the jwks_uri {} is no https URL", quote(keys_url->substr(0, 200)));
  }
  return KeySet::parse(TRY(fetch(*keys_url, cancel_fd)));
}

}  // namespace hive::oidc
