#include "agent/doctor.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "agent/doctor_local.h"
#include "agent/doctor_visit.h"
#include "base/strings.h"

namespace hive::agent {

namespace {

constexpr std::chrono::seconds tolerated_clock_difference{30};

std::string in_ms(std::chrono::microseconds time) {
  return fmt::format("{:.1f} ms", static_cast<double>(time.count()) / 1000);
}

/// Writes down, in the order of the way, what was seen of it; after the first failure nothing more is reached.
class Diagnosis {
 public:
  Diagnosis(const VisitPlan& plan, const Sightings& seen) : plan_(plan), seen_(seen) {
    group_.title = "Gateway " + plan.gateway.to_string();
  }

  CheckGroup write() {
    name();
    tcp();
    proxy();
    ssh();
    host_key();
    login();
    question();
    clock();
    return std::move(group_);
  }
  [[nodiscard]] DoctorExit exit() const { return exit_; }

 private:
  void add(std::string name, CheckStatus status, std::string detail, std::string remedy = {}) {
    if (ended_) {
      status = CheckStatus::skipped;
      detail = "not reached";
      remedy.clear();
    }
    group_.checks.push_back({std::move(name), status, std::move(detail), std::move(remedy)});
  }

  void fail(std::string name, std::string remedy, DoctorExit exit) {
    if (!ended_) exit_ = exit;
    add(std::move(name), CheckStatus::failed, seen_.error ? seen_.error->message : "", std::move(remedy));
    ended_ = true;
  }

  void warn(std::string name, std::string detail, std::string remedy) {
    if (!ended_ && exit_ == DoctorExit::healthy) exit_ = DoctorExit::problem;
    add(std::move(name), CheckStatus::warning, std::move(detail), std::move(remedy));
  }

  [[nodiscard]] std::string host() const { return plan_.proxy ? plan_.proxy->host : plan_.gateway.host; }

  void name() {
    if (seen_.addresses.empty()) {
      return fail("name",
                  fmt::format("check {}, and this machine's DNS: getent hosts {}",
                              plan_.proxy ? "the hosts in proxy and gateway_addr" : "the host in gateway_addr", host()),
                  DoctorExit::unreachable);
    }
    if (seen_.addresses == host()) {
      return add("name", CheckStatus::ok, host() + " is an address, there is nothing to look up");
    }
    add("name", CheckStatus::ok,
        fmt::format("{}{} is {} ({})", plan_.proxy ? "the proxy " : "", host(), seen_.addresses, in_ms(seen_.lookup)));
  }

  void tcp() {
    const bool there = plan_.proxy ? seen_.proxy_address.has_value() : seen_.address.has_value();
    if (!ended_ && !there) {
      const bool silent = seen_.error && seen_.error->code == ErrorCode::timed_out;
      const std::string_view listens = plan_.proxy
                                           ? "start the proxy, or check the port in proxy"
                                           : "start the gateway, or check the port (listen_addr of the gateway)";
      return fail("tcp", std::string(silent ? "a firewall drops the packets, or the machine is off" : listens),
                  DoctorExit::unreachable);
    }
    add("tcp", CheckStatus::ok,
        fmt::format("connected to {} in {}", seen_.proxy_address.value_or(seen_.address.value_or("")),
                    in_ms(seen_.connect)));
  }

  void proxy() {
    if (!plan_.proxy) return add("proxy", CheckStatus::skipped, "none is set for this gateway");
    if (!ended_ && !seen_.address) {
      return fail("proxy",
                  fmt::format("the proxy must open a tunnel to {}; see docs/configuration-agent.md, Through a "
                              "proxy",
                              plan_.gateway.to_string()),
                  DoctorExit::unreachable);
    }
    add("proxy", CheckStatus::ok,
        fmt::format("{} opens the tunnel to {}", plan_.proxy->to_string(), plan_.gateway.to_string()));
  }

  void ssh() {
    if (!ended_ && !seen_.software) {
      return fail("ssh",
                  "it must be the SSH port of the gateway (listen_addr), not its web port; if it is, the gateway's log "
                  "says why",
                  DoctorExit::unreachable);
    }
    add("ssh", CheckStatus::ok,
        fmt::format("{}, keys exchanged in {}", seen_.software.value_or(""), in_ms(seen_.exchange)));
  }

  void host_key() {
    if (ended_ || !seen_.standing) return add("host key", CheckStatus::skipped, "not reached");
    const std::string compare = "on the gateway: ssh-keygen -lf host_key.pub";
    if (!*seen_.standing) {
      return fail("host key", "compare with what the gateway itself says, " + compare, DoctorExit::refused);
    }
    switch (**seen_.standing) {
      case HostKeyTrust::Standing::pinned:
        return add("host key", CheckStatus::ok, seen_.host_key + ", as gateway_host_key says");
      case HostKeyTrust::Standing::known:
        return add("host key", CheckStatus::ok, seen_.host_key + ", as remembered");
      case HostKeyTrust::Standing::unknown:
        return warn(
            "host key", seen_.host_key + " is not known; the agent trusts it at its first connection",
            fmt::format("compare, {}; or pin it: \"gateway_host_key\": {}", compare, quote(seen_.host_key_line)));
    }
  }

  void login() {
    if (!ended_ && !plan_.key) {
      add("login", CheckStatus::skipped, "there is no usable key, see above");
      ended_ = true;
      return;
    }
    if (!ended_ && !seen_.login) {
      const crypto::PublicKey& key = plan_.key->public_key();
      const bool refused = seen_.error && seen_.error->code == ErrorCode::permission_denied;
      return fail("login",
                  refused ? fmt::format("this line must stand in the gateway's authorized_keys, not expired, and from= "
                                        "must admit this address: {}",
                                        crypto::PublicKey::from_ed25519(key.ed25519(), plan_.agent_id).to_line())
                          : "the gateway's log says why it gave up",
                  refused ? DoctorExit::refused : DoctorExit::unreachable);
    }
    add("login", CheckStatus::ok,
        fmt::format("the key {} is accepted for {} ({})", seen_.login.value_or(""), plan_.agent_id,
                    in_ms(seen_.authentication)));
  }

  void question() {
    if (!ended_ && !seen_.asked && seen_.error && seen_.error->code == ErrorCode::permission_denied) {
      add("question", CheckStatus::skipped,
          "this gateway does not know the doctor's channel; the login shows that an agent can connect");
      ended_ = true;
      return;
    }
    if (!ended_ && !seen_.answered) {
      return fail("question", "it accepts the key and then does not answer: the gateway's log says why",
                  DoctorExit::problem);
    }
    add("question", CheckStatus::ok,
        fmt::format("answered in {} by version {}", in_ms(seen_.round_trip), seen_.version));
  }

  void clock() {
    if (ended_ || !seen_.clock_difference) return add("clock", CheckStatus::skipped, "not reached");
    const auto difference = *seen_.clock_difference;
    // The way there and back may not take the same time, so less than that cannot be told.
    const auto doubt = seen_.round_trip / 2 + std::chrono::milliseconds(1);
    if (std::chrono::abs(difference) <= std::max<std::chrono::microseconds>(doubt, std::chrono::seconds(1))) {
      return add("clock", CheckStatus::ok, "the clocks agree within a second");
    }
    const std::string detail = fmt::format("the gateway's clock is {:.1f} s {} this one",
                                           std::abs(static_cast<double>(difference.count())) / 1000,
                                           difference.count() < 0 ? "behind" : "ahead of");
    if (std::chrono::abs(difference) <= tolerated_clock_difference) return add("clock", CheckStatus::ok, detail);
    warn("clock", detail, "set the clocks (NTP): expiry times of keys and the times in logs depend on them");
  }

  const VisitPlan& plan_;
  const Sightings& seen_;
  CheckGroup group_;
  DoctorExit exit_ = DoctorExit::healthy;
  bool ended_ = false;
};

std::optional<crypto::PrivateKey> usable_key(const config::AgentConfig& config) {
  auto key = config.private_key.empty() ? crypto::PrivateKey::load(config.private_key_path)
                                        : crypto::PrivateKey::from_openssh(config.private_key.reveal());
  if (!key) return std::nullopt;
  return *std::move(key);
}

DoctorExit exit_of(const CheckGroup& group) {
  const bool fine = std::ranges::all_of(group.checks, [](const Check& check) {
    return check.status == CheckStatus::ok || check.status == CheckStatus::skipped;
  });
  return fine ? DoctorExit::healthy : DoctorExit::problem;
}

/// A failure further on says more than a warning before it.
DoctorExit first_of(DoctorExit now, DoctorExit next) {
  return now == DoctorExit::healthy || now == DoctorExit::problem ? (next == DoctorExit::healthy ? now : next) : now;
}

struct Presence {
  bool asked = false;
  std::string gateway;  ///< that has the agent online; empty: none
  std::string address;
};

CheckGroup agent_group(const config::AgentConfig& config, const Presence& presence) {
  CheckGroup group{.title = "The agent " + config.agent_id, .checks = {}};
  if (!presence.gateway.empty()) {
    group.checks.push_back(
        {"tunnel", CheckStatus::ok, fmt::format("online at {}, from {}", presence.gateway, presence.address), ""});
  } else if (presence.asked) {
    group.checks.push_back({"tunnel", CheckStatus::warning, "no gateway that answered has it online",
                            "start it: systemctl start myrmex-agent; its log says what it waits for"});
  } else {
    group.checks.push_back({"tunnel", CheckStatus::skipped, "no gateway could be asked", ""});
  }
  return group;
}

}  // namespace

DoctorReport examine(const DoctorOptions& options) {
  DoctorReport report;
  report.file = options.config_path;
  std::optional<config::AgentConfig> config;
  report.groups.push_back(examine_machine(options, config));
  report.exit = exit_of(report.groups.back());
  if (!config) return report;
  report.agent_id = config->agent_id;
  auto trust = HostKeyTrust::create(*config);
  if (!trust) {
    report.groups.front().checks.push_back({"host keys", CheckStatus::failed, trust.error().message, ""});
    report.exit = DoctorExit::problem;
    return report;
  }
  auto shared_trust = std::make_shared<const HostKeyTrust>(*std::move(trust));
  net::Runtime runtime(1, 1);
  runtime.start();
  Presence presence;
  const auto gateways = options.gateway ? std::vector{*options.gateway} : config->gateways;
  for (const config::GatewayAddress& gateway : gateways) {
    VisitPlan plan;
    plan.gateway = gateway;
    if (const config::ProxyAddress* proxy = config->proxy_for(gateway)) plan.proxy = *proxy;
    plan.agent_id = config->agent_id;
    plan.key = usable_key(*config);
    plan.key_path = config->private_key_path;
    plan.trust = shared_trust;
    plan.step_timeout = options.step_timeout;
    plan.clock = options.clock;
    const Sightings seen = visit(runtime, runtime.worker(0), plan);
    Diagnosis diagnosis(plan, seen);
    report.groups.push_back(diagnosis.write());
    report.exit = first_of(report.exit, diagnosis.exit());
    presence.asked = presence.asked || seen.answered;
    if (seen.online && presence.gateway.empty()) presence = {true, gateway.to_string(), seen.online_from};
  }
  runtime.stop();
  report.groups.push_back(agent_group(*config, presence));
  report.exit = first_of(report.exit, exit_of(report.groups.back()));
  return report;
}

}  // namespace hive::agent
