#include "cli/bootstrap.h"

#include <filesystem>

#include "base/strings.h"
#include "cli/json_text.h"
#include "cli/new_files.h"
#include "cli/probe.h"
#include "config/agent_config.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

struct Plan {
  std::string agent;
  config::GatewayAddress gateway;
  std::string key_path;
  std::string public_key_path;
  std::string config_path;
};

std::unexpected<Failure> failed(ExitCode code, const Error& error, std::string_view what = {}) {
  return std::unexpected(Failure{code, what.empty() ? error.message : fmt::format("{}: {}", what, error.message)});
}

std::string absolute(const std::string& path) {
  return std::filesystem::absolute(path).lexically_normal().string();
}

std::expected<Plan, Failure> plan_of(const BootstrapOptions& options, const Connection& connection) {
  Plan plan;
  plan.agent = options.agent;
  if (auto checked = check_agent_id(plan.agent); !checked)
    return failed(ExitCode::usage, checked.error(), "--agent-id");
  std::string address = options.gateway_address;
  if (address.empty()) {
    Result<Endpoint> endpoint = endpoint_of(connection.url);
    if (!endpoint) return failed(ExitCode::usage, endpoint.error());
    address = config::GatewayAddress{endpoint->host, 2222}.to_string();
  }
  Result<config::GatewayAddress> gateway = config::parse_gateway_address(address);
  if (!gateway) return failed(ExitCode::usage, gateway.error(), "--gateway-addr");
  plan.gateway = *gateway;
  plan.key_path = absolute(options.key_path);
  plan.public_key_path = plan.key_path + ".pub";
  plan.config_path = absolute(options.config_path);
  return plan;
}

Result<void> reserve(NewFiles& files, const Plan& plan) {
  TRY(files.reserve(plan.key_path, 0600));
  TRY(files.reserve(plan.public_key_path, 0644));
  return files.reserve(plan.config_path, 0600);
}

std::string config_text(const Plan& plan, const EnrolledAgent& enrolled) {
  std::string text = "{\n";
  auto add = [&text](std::string_view key, std::string_view value) {
    text += "  ";
    json::append_string(text, key);
    text += ": ";
    json::append_string(text, value);
    text += ",\n";
  };
  add("agent_id", plan.agent);
  add("gateway_addr", plan.gateway.to_string());
  add("private_key_path", plan.key_path);
  if (enrolled.gateway_host_key.empty()) {
    add("known_host_key_path", plan.key_path + ".gateway_hostkey");
  } else {
    add("gateway_host_key", enrolled.gateway_host_key);
  }
  return text + "  \"allowed_commands\": []\n}\n";
}

std::expected<std::string, Failure> join_token_for(Context& context, const BootstrapOptions& options) {
  auto given = given_join_token(options.join_token, context.environment);
  if (!given) return std::unexpected(given.error());
  if (*given) return **given;
  auto gateway = context.gateway();
  if (!gateway) {
    Failure failure = gateway.error();
    if (failure.code == ExitCode::not_authenticated) {
      failure.message = "no join token and no admin's token: let an admin run `myrmex enroll-token --agent-id " +
                        options.agent + "`, and give what it prints by --join-token-file FILE or MYRMEX_JOIN_TOKEN";
    }
    return std::unexpected(failure);
  }
  auto minted = mint_join_token(*gateway, options.agent, std::nullopt);
  if (!minted) return std::unexpected(minted.error());
  context.output.note("join token made, good until " + escape_for_terminal(minted->expires_at));
  return minted->token;
}

std::string result_json(const Plan& plan, const EnrolledAgent& enrolled) {
  std::string out;
  auto add = [&out](std::string_view key, std::string_view value) {
    out += out.empty() ? "{" : ",";
    json::append_string(out, key);
    out += ':';
    json::append_string(out, value);
  };
  add("agent_id", plan.agent);
  add("key_path", plan.key_path);
  add("pubkey_path", plan.public_key_path);
  add("config_path", plan.config_path);
  add("fingerprint", enrolled.fingerprint);
  add("gateway_addr", plan.gateway.to_string());
  add("gateway_host_key", enrolled.gateway_host_key);
  return pretty_json(out + "}");
}

std::string result_text(const Plan& plan, const EnrolledAgent& enrolled) {
  std::string text = fmt::format(
      "Agent {} is enrolled with key {}.\n"
      "  private key    {}\n"
      "  public key     {}\n"
      "  configuration  {}\n",
      plan.agent, enrolled.fingerprint, plan.key_path, plan.public_key_path, plan.config_path);
  text += enrolled.gateway_host_key.empty()
              ? "The gateway did not tell its host key: the agent will trust the first one it sees.\n"
              : "The gateway's host key is pinned in the configuration.\n";
  return text + fmt::format(
                    "\nNext: allow what the agent may run (allowed_commands; it runs nothing yet), then start it:\n"
                    "  myrmex-agent --check-config {0}\n"
                    "  myrmex-agent --config {0}\n",
                    plan.config_path);
}

std::expected<void, Failure> bootstrap(Context& context, const BootstrapOptions& options) {
  auto gateway = context.gateway_without_token();
  if (!gateway) return std::unexpected(gateway.error());
  auto plan = plan_of(options, gateway->connection());
  if (!plan) return std::unexpected(plan.error());
  // Before the join token is used: a folder that cannot be written must not cost one.
  NewFiles files;
  if (auto reserved = reserve(files, *plan); !reserved) return failed(ExitCode::error, reserved.error());
  auto join_token = join_token_for(context, options);
  if (!join_token) return std::unexpected(join_token.error());

  Result<crypto::PrivateKey> key = crypto::PrivateKey::generate(plan->agent);
  if (!key) return failed(ExitCode::error, key.error());
  if (auto written = files.write(plan->key_path, key->to_openssh()); !written) {
    return failed(ExitCode::error, written.error());
  }
  if (auto written = files.write(plan->public_key_path, key->public_key().to_line() + "\n"); !written) {
    return failed(ExitCode::error, written.error());
  }
  context.output.note("key made: " + key->public_key().fingerprint());

  auto enrolled = enroll_key(*gateway, *join_token, plan->agent, key->public_key());
  if (!enrolled) return std::unexpected(enrolled.error());
  context.output.note("enrolled at " + escape_for_terminal(gateway->connection().url));
  if (!gateway->connection().verify_tls && !enrolled->gateway_host_key.empty()) {
    context.output.note("warning: the host key came over a connection that was not checked (--insecure)");
  }
  auto published = files.write(plan->config_path, config_text(*plan, *enrolled));
  if (published) published = files.publish();
  if (!published) {
    return failed(ExitCode::error, published.error(),
                  fmt::format("the key is enrolled, but its files are not there; revoke it with `myrmex agents revoke "
                              "{} --key {}`",
                              plan->agent, enrolled->fingerprint));
  }
  context.output.write(context.format.json ? result_json(*plan, *enrolled) : result_text(*plan, *enrolled));
  return {};
}

}  // namespace

ExitCode run_bootstrap(Context& context, const BootstrapOptions& options) {
  auto done = bootstrap(context, options);
  return done ? ExitCode::success : context.fail_with(done.error());
}

}  // namespace hive::cli
