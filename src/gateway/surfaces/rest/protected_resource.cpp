#include "gateway/surfaces/rest/protected_resource.h"

#include <algorithm>

#include "gateway/surfaces/rest/endpoints.h"
#include "gateway/surfaces/rest/object_writer.h"
#include "net/http/ascii.h"
#include "protocol/json.h"

namespace hive::rest {

namespace {

/// A name of a wildcard may have any first label, and this one is put into a header.
bool is_plain_authority(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || std::string_view(".-:[]_").contains(c);
  });
}

}  // namespace

std::string own_url(const Context& context) {
  std::string authority = net::http::to_lower(context.request->header("host").value_or(""));
  if (!is_plain_authority(authority)) return "";
  std::string secure = "https://" + authority;
  bool is_secure = context.request->is_tls ||
                   std::ranges::any_of(context.settings->config->allowed_origins, [&](const std::string& origin) {
                     return net::http::equal_ignoring_case(origin, secure);
                   });
  return is_secure ? secure : "http://" + authority;
}

std::string resource_metadata_url(const Context& context) {
  if (context.settings->config->oidc_issuer.empty()) return "";
  std::string url = own_url(context);
  return url.empty() ? "" : url + std::string(protected_resource_path) + "/mcp";
}

void get_protected_resource(const ContextPointer& context) {
  const std::string& issuer = context->settings->config->oidc_issuer;
  if (issuer.empty()) {
    return context->refuse({404, "not_found", "this gateway has no identity provider; see oidc_issuer"});
  }
  std::string url = own_url(*context);
  if (url.empty()) return context->refuse({400, "unknown_host", "the request names no host"});
  // The resource is the URL into which the well-known path was put (RFC 9728 section 3.3).
  url += std::string_view(context->request->path).substr(protected_resource_path.size());
  std::string body = "{";
  ObjectWriter(body)
      .text("resource", url)
      .raw("authorization_servers", "[" + json::encode_string(issuer) + "]")
      .raw("bearer_methods_supported", R"(["header"])")
      .text("resource_name", "Myrmex Hive gateway " + context->settings->config->gateway_id);
  context->respond_json(body + "}\n");
}

}  // namespace hive::rest
