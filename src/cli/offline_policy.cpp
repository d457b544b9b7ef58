#include "cli/offline_policy.h"

#include <expected>
#include <vector>

#include "base/file.h"
#include "base/strings.h"
#include "cli/call_arguments.h"
#include "config/gateway_config.h"
#include "config/secret_reference.h"
#include "crypto/sha256.h"
#include "gateway/policy/authenticator.h"
#include "gateway/policy/policy.h"

namespace hive::cli {

namespace {

constexpr std::size_t max_file_bytes = std::size_t{16} << 20;

/// Stands in for a secret: as long as a real one, and the same for the same reference.
std::string placeholder_for(std::string_view reference) {
  return to_hex(crypto::sha256(reference));
}

/// Environment variables that are set count, because names and addresses may be references too.
config::SecretSources placeholder_sources() {
  config::SecretSources sources;
  sources.environment = [](const std::string& name) -> std::optional<std::string> {
    auto value = config::SecretSources::system().environment(name);
    return value ? value : placeholder_for("env:" + name);
  };
  sources.file = [](const std::string& path) -> Result<std::string> { return placeholder_for("file:" + path); };
  sources.vault = [](const std::string& path, const std::string& field) -> Result<std::string> {
    return placeholder_for("vault:" + path + "#" + field);
  };
  return sources;
}

/// Who a credential of the configuration stands for, as if it had been shown.
policy::Principal principal_of(const config::StaticToken& token, policy::Grant grant, std::string rule) {
  grant.identity = token.identity;
  grant.rule = std::move(rule);
  return {.name = token.identity.empty() ? token.field : token.identity,
          .role = policy::role_from_string(token.role).value_or(policy::Role::read_only),
          .grant = std::make_shared<const policy::Grant>(std::move(grant))};
}

policy::Grant scoped_grant(const config::ScopedToken& token) {
  policy::Grant grant;
  grant.kind = policy::CredentialKind::scoped_token;
  grant.scope = policy::Scope{token.agents, token.tags, token.tools, token.credential.field};
  grant.expires_at = token.expires_at;
  return grant;
}

}  // namespace

struct OfflinePolicy::State {
  config::GatewayConfig config;
  const Clock& clock;
  std::shared_ptr<const policy::Policy> policy;
  std::shared_ptr<const policy::Authenticator> authenticator;

  using Asker = std::expected<policy::Principal, policy::CredentialFault>;

  [[nodiscard]] Result<Asker> find_token(const std::string& name) const;
  [[nodiscard]] Result<Asker> find_asker(const PolicySubject& subject) const;
};

Result<OfflinePolicy::State::Asker> OfflinePolicy::State::find_token(const std::string& name) const {
  if (name == "auth_token" && !config.auth_token.empty()) {
    config::StaticToken token{.token = config.auth_token, .role = "admin", .identity = {}, .field = "auth_token"};
    return principal_of(token, {}, config.where("auth_token"));
  }
  std::vector<Asker> found;
  for (const config::StaticToken& token : config.tokens) {
    if (token.field != name && token.identity != name) continue;
    found.push_back(principal_of(token, {}, config.where(token.field)));
    if (token.field == name) return found.back();
  }
  for (const config::ScopedToken& token : config.scoped_tokens) {
    if (token.credential.field != name && token.credential.identity != name) continue;
    bool has_expired = token.expires_at && *token.expires_at <= clock.wall_now();
    if (has_expired) {
      found.emplace_back(std::unexpected(policy::CredentialFault::expired));
    } else {
      found.emplace_back(principal_of(token.credential, scoped_grant(token), config.where(token.credential.field)));
    }
    if (token.credential.field == name) return found.back();
  }
  if (found.size() == 1) return found.front();
  if (found.empty()) {
    return fail(ErrorCode::not_found, "{} has no token {}: name its field, as in tokens[0], or its identity",
                config.source_path, quote_briefly(name));
  }
  return fail(ErrorCode::invalid_argument, "{} has {} tokens of {}: name the field of one, as in tokens[0]",
              config.source_path, found.size(), quote_briefly(name));
}

Result<OfflinePolicy::State::Asker> OfflinePolicy::State::find_asker(const PolicySubject& subject) const {
  if (!subject.token.empty()) return find_token(subject.token);
  if (!subject.certificate.empty()) {
    return authenticator->authenticate({.authorization = std::nullopt,
                                        .certificate_name = subject.certificate,
                                        .peer_address = "",
                                        .proxy_secret = std::nullopt,
                                        .proxy_identity = std::nullopt});
  }
  if (!subject.oidc.empty()) {
    return authenticator->from_claims({.subject = subject.oidc, .groups = subject.as.groups, .expires_at = {}});
  }
  const AskedAs& as = subject.as;
  policy::Grant grant;
  grant.identity = as.identity;
  grant.groups = as.groups;
  grant.rule = "\"as\" of the case";
  if (as.has_scope()) {
    // As for POST /api/explain: a limit that is not given means everything.
    bool names_agents = !as.agents.empty() || !as.tags.empty();
    grant.scope = policy::Scope{names_agents ? as.agents : std::vector<std::string>{"*"}, as.tags,
                                as.tools.empty() ? std::vector<std::string>{"*"} : as.tools, "as"};
  }
  return policy::Principal{.name = as.identity.empty() ? "as" : as.identity,
                           .role = policy::role_from_string(as.role).value_or(policy::Role::read_only),
                           .grant = std::make_shared<const policy::Grant>(std::move(grant))};
}

OfflinePolicy::OfflinePolicy(std::unique_ptr<State> state) : state_(std::move(state)) {}
OfflinePolicy::~OfflinePolicy() = default;
OfflinePolicy::OfflinePolicy(OfflinePolicy&&) noexcept = default;
OfflinePolicy& OfflinePolicy::operator=(OfflinePolicy&&) noexcept = default;

Result<OfflinePolicy> OfflinePolicy::load(const std::string& path, const Clock& clock) {
  // Parsed, not loaded as at a start: modes of files matter where the gateway runs, not where its policy is tested.
  std::string text = TRY(read_file(path, max_file_bytes));
  config::GatewayConfig config = TRY(config::parse_gateway_config(text, path, placeholder_sources()));
  auto state =
      std::make_unique<State>(State{.config = std::move(config), .clock = clock, .policy = {}, .authenticator = {}});
  state->policy = policy::make_policy(state->config, clock);
  state->authenticator = TRY(policy::Authenticator::create(state->config, clock));
  return OfflinePolicy(std::move(state));
}

Result<ExplanationView> OfflinePolicy::explain(const PolicyCase& asked, const PolicySubject& subject) const {
  State::Asker asker = TRY(state_->find_asker(subject));
  if (!asker) {
    std::string fault(policy::to_string(asker.error()));
    return ExplanationView{.verdict = "deny",
                           .reason = fault,
                           .tier = {},
                           .tier_rule = {},
                           .gates = {{"credential", "deny", fault, "the credential is not accepted", ""}}};
  }
  std::size_t split = asked.tool.find("__");
  std::string_view tool = std::string_view(asked.tool).substr(split + 2);
  policy::TierAnswer tier = state_->policy->explain_tier(tool, asked.arguments);
  policy::Question question{.principal = *asker,
                            .agent = std::string_view(asked.tool).substr(0, split),
                            .tool = tool,
                            .arguments = asked.arguments,
                            .tier = tier.tier};
  std::vector<policy::GateAnswer> answers = state_->policy->explain(question);
  if (tier.tier != protocol::Tier::read && state_->config.audit_log_path.empty()) {
    answers.push_back({"audit",
                       {.verdict = policy::Verdict::deny,
                        .reason = "audit_unavailable",
                        .message = "calls of tier write and admin are only made when they are recorded",
                        .rule = state_->config.where("audit_log_path")}});
  }
  ExplanationView explanation{.verdict = "allow",
                              .reason = {},
                              .tier = std::string(protocol::to_string(tier.tier)),
                              .tier_rule = std::move(tier.rule),
                              .gates = {}};
  policy::Verdict whole = policy::Verdict::allow;
  for (const policy::GateAnswer& answer : answers) {
    const policy::Decision& decision = answer.decision;
    explanation.gates.push_back({std::string(answer.gate), std::string(policy::to_string(decision.verdict)),
                                 decision.reason, decision.message, decision.rule});
    // The first gate that refuses decides; a request for approval is only made of a call that none refuses.
    bool decides = whole != policy::Verdict::deny &&
                   (decision.verdict == policy::Verdict::deny ||
                    (decision.verdict != policy::Verdict::allow && whole == policy::Verdict::allow));
    if (!decides) continue;
    whole = decision.verdict;
    explanation.reason = decision.reason;
  }
  explanation.verdict = policy::to_string(whole);
  return explanation;
}

}  // namespace hive::cli
