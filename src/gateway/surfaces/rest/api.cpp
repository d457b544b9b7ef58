#include "gateway/surfaces/rest/api.h"

#include <algorithm>
#include <cctype>

#include <unistd.h>

#include "base/strings.h"
#include "gateway/surfaces/rest/admission.h"
#include "gateway/surfaces/rest/route.h"
#include "gateway/surfaces/rest/services.h"
#include "net/http/ascii.h"
#include "net/http/listen_address.h"
#include "net/http/target.h"

namespace hive::rest {

namespace {

class RestApi final : public Api, public std::enable_shared_from_this<RestApi> {
 public:
  RestApi(Dependencies dependencies, std::shared_ptr<const Settings> settings)
      : services_(std::make_shared<Services>(std::move(dependencies), std::move(settings))) {}

  net::http::Handler handler() override {
    return [services = services_](std::shared_ptr<net::http::Request> request,
                                  std::shared_ptr<net::http::Responder> responder) {
      auto context = std::make_shared<Context>();
      context->services = services;
      context->settings = services->settings();
      context->request = std::move(request);
      context->responder = std::move(responder);
      context->request_id = services->next_request_id();
      serve(std::move(context));
    };
  }

  void apply(std::shared_ptr<const Settings> settings) override { services_->apply(std::move(settings)); }

  void flush() override {
    if (auto provider = services_->settings()->identity_provider) provider->stop();
    services_->record_due(true);
  }

 private:
  static void serve(std::shared_ptr<Context> context) {
    const net::http::Request& request = *context->request;
    const Route* route = find_route(request.method, request.path);
    // Probes of load balancers name no host that we know, and get nothing that is worth protecting.
    bool is_open = route != nullptr && route->is_public && !route->names_host;
    if (!is_open && !check_origin(*context)) return;
    if (request.method == "OPTIONS") return answer_options(*context);
    if (route == nullptr) return refuse_unrouted(*context);
    if (!check_parameters(*context, *route)) return;
    if (route->is_public) return route->handler(context);
    admit(std::move(context), *route);
  }

  static bool check_origin(const Context& context) {
    switch (context.settings->origins.check(*context.request)) {
      case OriginPolicy::Verdict::accepted:
        return true;
      case OriginPolicy::Verdict::bad_host:
        context.refuse(
            {403, "unknown_host",
             "the Host header names no host of this gateway; use its address or host name, or add its URL to "
             "allowed_origins"});
        return false;
      case OriginPolicy::Verdict::bad_origin:
        context.refuse({403, "unknown_origin", "pages of this origin may not use the gateway; see allowed_origins"});
        return false;
    }
    return false;
  }

  /// What MCP clients send. The names of mirrored parameters are up to the tools, so those that are asked for count.
  static std::string mcp_headers(const net::http::Request& request) {
    std::string names = ", Accept, Last-Event-ID, Mcp-Session-Id, Mcp-Protocol-Version, Mcp-Method, Mcp-Name";
    for (std::string_view name : split(request.header("access-control-request-headers").value_or(""), ',')) {
      name = trim(name);
      bool is_token = std::ranges::all_of(
          name, [](unsigned char c) { return std::isalnum(c) != 0 || c == '-' || c == '_' || c == '.'; });
      if (is_token && net::http::to_lower(name).starts_with("mcp-param-")) names += ", " + std::string(name);
    }
    return names;
  }

  static void answer_options(const Context& context) {
    std::string allowed =
        context.request->path == "*" ? "GET, HEAD, POST, OPTIONS" : allowed_methods(context.request->path);
    if (allowed.empty()) return refuse_unrouted(context);
    net::http::Response response;
    response.status = 204;
    response.headers = {{"Allow", allowed}};
    if (!context.settings->origins.shared_origin(*context.request).empty()) {
      bool is_mcp = is_mcp_path(context.request->path);
      response.headers.emplace_back("Access-Control-Allow-Methods",
                                    is_mcp ? "GET, POST, DELETE, OPTIONS" : "GET, POST, OPTIONS");
      response.headers.emplace_back("Access-Control-Allow-Headers",
                                    "Content-Type, Authorization" + (is_mcp ? mcp_headers(*context.request) : ""));
      response.headers.emplace_back("Access-Control-Max-Age", "600");
    }
    context.respond(std::move(response));
  }

  static void refuse_unrouted(const Context& context) {
    std::string allowed = allowed_methods(context.request->path);
    if (allowed.empty()) {
      return context.refuse({404, "not_found", "there is no such path; GET /api/openapi.json lists them"});
    }
    context.refuse({405, "method_not_allowed", fmt::format("this path has only {}", allowed)}, {{"Allow", allowed}});
  }

  /// What is wrong with one NAME=VALUE; "" if nothing is. What is wrong must not be ignored: it would change what is
  /// shown without a word.
  static std::string parameter_problem(std::string_view pair, std::span<const std::string_view> known,
                                       std::vector<std::string_view>& seen) {
    std::size_t equals = pair.find('=');
    std::string_view name = pair.substr(0, equals);
    if (name == "token" || name == "access_token") {
      return "a token in a URL ends up in logs; send the header Authorization: Bearer TOKEN instead";
    }
    if (std::ranges::find(known, name) == known.end()) {
      std::optional<std::string_view> nearest = nearest_name(name, known);
      return fmt::format("unknown query parameter {}{}", quote(name),
                         nearest ? fmt::format("; did you mean \"{}\"?", *nearest) : "");
    }
    if (std::ranges::find(seen, name) != seen.end()) return fmt::format("query parameter {}: given twice", name);
    seen.push_back(name);
    std::string_view value = equals == std::string_view::npos ? std::string_view() : pair.substr(equals + 1);
    if (net::http::decode_query_component(value)) return "";
    return fmt::format("query parameter {}: a broken percent escape, a NUL or invalid UTF-8", name);
  }

  static bool check_parameters(const Context& context, const Route& route) {
    if (context.request->query.empty()) return true;
    std::vector<std::string_view> known;
    for (const QueryParameter& parameter : route.parameters)
      known.push_back(parameter.name);
    std::vector<std::string_view> seen;
    for (std::string_view pair : split(context.request->query, '&')) {
      if (pair.empty()) continue;
      std::string problem = parameter_problem(pair, known, seen);
      if (problem.empty()) continue;
      context.refuse({400, "invalid_query", std::move(problem)});
      return false;
    }
    return true;
  }

  std::shared_ptr<Services> services_;
};

}  // namespace

Result<std::shared_ptr<const Settings>> make_settings(std::shared_ptr<const config::GatewayConfig> config,
                                                      std::shared_ptr<const policy::Policy> policy,
                                                      std::span<const std::string> host_names, const Clock& clock,
                                                      std::shared_ptr<oidc::Provider> identity_provider) {
  std::shared_ptr<const policy::Authenticator> authenticator = TRY(policy::Authenticator::create(*config, clock));
  std::vector<std::string> hosts(host_names.begin(), host_names.end());
  for (const std::string& address : {config->http_addr, config->plaintext_http_addr}) {
    if (address.empty()) continue;
    hosts.push_back(TRY(net::http::parse_listen_address(address)).host);
  }
  char host_name[256] = {};
  if (::gethostname(host_name, sizeof host_name - 1) == 0) hosts.emplace_back(host_name);
  OriginPolicy origins(hosts, config->allowed_origins);
  return std::make_shared<const Settings>(Settings{std::move(config), std::move(policy), std::move(authenticator),
                                                   std::move(origins), std::move(identity_provider)});
}

std::shared_ptr<Api> Api::create(Dependencies dependencies, std::shared_ptr<const Settings> settings) {
  return std::make_shared<RestApi>(std::move(dependencies), std::move(settings));
}

}  // namespace hive::rest
