#include "gateway/surfaces/rest/admission.h"

#include <optional>
#include <string>
#include <utility>

#include "base/strings.h"
#include "gateway/surfaces/rest/access_refusal.h"
#include "gateway/surfaces/rest/protected_resource.h"
#include "net/http/connection_limits.h"

namespace hive::rest {

namespace {

using policy::CredentialFault;

/// A secret of this length cannot be guessed over the network, so it is looked at even while its source is slowed down:
/// a neighbour behind the same address must not lock its owner out.
constexpr std::size_t unguessable_bytes = 20;

net::http::Headers challenge(CredentialFault fault) {
  std::string value = R"(Bearer realm="myrmex-hive")";
  switch (fault) {
    case CredentialFault::missing:
      break;
    case CredentialFault::malformed:
    case CredentialFault::unsupported:
      value += R"(, error="invalid_request")";
      break;
    default:
      value += R"(, error="invalid_token")";
  }
  return {{"WWW-Authenticate", value}};
}

/// What the caller is told. Why a credential was not accepted is for the audit log: whoever guesses or forges learns
/// nothing from it.
Problem problem_of(CredentialFault fault) {
  switch (fault) {
    case CredentialFault::missing:
      return {401, policy::to_string(fault), "no credential; send the header Authorization: Bearer TOKEN"};
    case CredentialFault::malformed:
    case CredentialFault::unsupported:
      return {401, policy::to_string(fault), "the Authorization header is not of the form: Bearer TOKEN"};
    case CredentialFault::unknown:
      return {401, policy::to_string(fault), "the token is not known here"};
    case CredentialFault::provider_unavailable:
      return {401, policy::to_string(fault), "the identity provider cannot be asked now; try again later"};
    default:
      return {401, "credential_refused",
              "the credential is not accepted; the gateway's audit log says why (authentication_failed)"};
  }
}

/// All values of X-Forwarded-For in their order: some proxies add a line of their own to the one that the client sent.
std::optional<std::string> forwarded_for(const net::http::Request& request) {
  std::optional<std::string> joined;
  for (const auto& [name, value] : request.headers) {
    if (name != "x-forwarded-for") continue;
    joined = joined ? *joined + "," + value : value;
  }
  return joined;
}

policy::Credentials credentials_of(const net::http::Request& request, const config::GatewayConfig& config) {
  policy::Credentials credentials;
  credentials.authorization = request.header("authorization");
  // A connection may be older than the configuration that no longer wants certificates.
  if (request.client_certificate && !config.client_ca_cert_path.empty())
    credentials.certificate_name = request.client_certificate->common_name;
  credentials.peer_address = request.peer_address;
  if (!config.trusted_proxy_secret.empty()) {
    credentials.proxy_secret = request.header(config.trusted_proxy_secret_header);
    credentials.proxy_identity = request.header(config.trusted_proxy_identity_header);
  }
  return credentials;
}

/// Whether what was sent is nothing, or so short that it could be found by trying.
bool is_guess(const policy::Credentials& credentials) {
  if (credentials.certificate_name) return false;
  if (credentials.proxy_secret && credentials.proxy_secret->size() >= unguessable_bytes) return false;
  auto token = policy::bearer_token(credentials.authorization);
  return !token || token->size() < unguessable_bytes;
}

/// One request whose sender is being found out.
class Admission : public std::enable_shared_from_this<Admission> {
 public:
  Admission(std::shared_ptr<Context> context, const Route& route)
      : context_(std::move(context)),
        route_(route),
        services_(*context_->services),
        authenticator_(*context_->settings->authenticator),
        credentials_(credentials_of(*context_->request, *context_->settings->config)),
        source_(net::http::source_of(client_address_of(*context_))),
        wait_(services_.failures.must_wait(source_)) {}

  void start() {
    if (wait_ && is_guess(credentials_)) return refuse_blocked();
    if (certificate_has_expired()) {
      return refuse(CredentialFault::expired, "the client certificate of " + shown(*credentials_.certificate_name) +
                                                  " has ended since the connection was opened");
    }
    if (auto token = authenticator_.identity_token(credentials_)) return verify(std::string(*token));
    auto principal = authenticator_.authenticate(credentials_);
    if (!principal) return refuse(principal.error(), shown_identity());
    enter(*std::move(principal));
  }

 private:
  bool certificate_has_expired() const {
    return credentials_.certificate_name &&
           services_.dependencies.clock.wall_now() >= context_->request->client_certificate->expires_at;
  }

  void verify(std::string token) {
    const std::shared_ptr<oidc::Provider>& provider = context_->settings->identity_provider;
    if (!provider) return refuse(CredentialFault::provider_unavailable, "no identity provider is there");
    provider->verify(*context_->request->worker, std::move(token),
                     [self = shared_from_this()](oidc::Provider::Verified claims) {
                       if (!claims) return self->refuse_token(claims.error());
                       auto principal = self->authenticator_.from_claims(*claims);
                       if (!principal) {
                         return self->refuse(principal.error(), "the token of " + shown(claims->subject));
                       }
                       self->enter(*std::move(principal));
                     });
  }

  void enter(policy::Principal principal) {
    context_->principal = std::move(principal);
    bool admits_role = route_.roles.contains(context_->principal.role) || route_.role_gate == RoleGate::funnel;
    if (!admits_role) {
      return refuse_access(*context_, "role", fmt::format("{} {}", route_.method, route_.path),
                           fmt::format("the role {} may not use {} {}", policy::to_string(context_->principal.role),
                                       route_.method, route_.path));
    }
    if (check_reach(*context_, route_)) route_.handler(context_);
  }

  /// The header of an identity token that has not its form was a good one; what is in it is no business of the
  /// caller's.
  void refuse_token(const oidc::OidcFault& fault) {
    record_failure(policy::to_string(fault.fault), fault.detail);
    answer(fault.fault == CredentialFault::malformed ? CredentialFault::bad_signature : fault.fault);
  }

  void refuse(CredentialFault fault, const std::string& detail) {
    if (fault != CredentialFault::missing) {
      record_failure(policy::to_string(fault), detail);
    } else if (credentials_.proxy_secret && !credentials_.proxy_identity.value_or("").empty()) {
      record_failure("untrusted_proxy",
                     "headers of a trusted proxy with a wrong secret or from an address that is none");
    }  // otherwise nothing was sent, so nothing was tried
    answer(fault);
  }

  void record_failure(std::string_view reason, const std::string& detail) {
    services_.record(services_.failures.record(source_, reason, detail));
  }

  void answer(CredentialFault fault) {
    if (wait_) return refuse_blocked();
    net::http::Headers headers = challenge(fault);
    if (route_.is_mcp) {
      // Clients of MCP find the identity provider by it (RFC 9728 section 5.1).
      if (std::string url = resource_metadata_url(*context_); !url.empty()) {
        headers.front().second += fmt::format(R"(, resource_metadata="{}")", url);
      }
    }
    context_->refuse(problem_of(fault), std::move(headers));
  }

  void refuse_blocked() {
    context_->refuse(
        {429, "too_many_failures", "too many failed authentications from this address; wait and try again"},
        {{"Retry-After", std::to_string(services_.retry_after(wait_.value_or(std::chrono::seconds(1)), 1))}});
  }

  /// Whose certificate or proxy header was not enough.
  std::string shown_identity() const {
    if (credentials_.certificate_name) {
      return fmt::format("the client certificate of {}, SHA-256 {}", shown(*credentials_.certificate_name),
                         context_->request->client_certificate->fingerprint);
    }
    if (credentials_.proxy_identity) return "a proxy speaks for " + shown(*credentials_.proxy_identity);
    return "";
  }

  static std::string shown(std::string_view identity) { return quote(identity.substr(0, 128)); }

  const std::shared_ptr<Context> context_;
  const Route& route_;
  Services& services_;
  const policy::Authenticator& authenticator_;  // of the settings that the context holds
  const policy::Credentials credentials_;       // views into the request that the context holds
  const std::string source_;
  const std::optional<std::chrono::seconds> wait_;
};

}  // namespace

void admit(std::shared_ptr<Context> context, const Route& route) {
  context->services->record_due();
  std::make_shared<Admission>(std::move(context), route)->start();
}

std::string client_address_of(const Context& context) {
  return policy::client_address(context.request->peer_address, forwarded_for(*context.request),
                                *context.settings->authenticator);
}

}  // namespace hive::rest
