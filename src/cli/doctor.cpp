#include "cli/doctor.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <ctime>

#include "base/clock.h"
#include "base/strings.h"
#include "cli/fleet_view.h"
#include "cli/json_text.h"
#include "cli/probe.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr std::chrono::milliseconds default_step_timeout = std::chrono::seconds(5);
constexpr std::chrono::seconds tolerated_clock_difference{30};
constexpr std::int64_t certificate_days_to_warn = 14;
constexpr std::size_t widest_offline_list = 200;

/// Runs the steps; the first one that fails keeps the later ones from running.
class Examination {
 public:
  explicit Examination(Context& context) : context_(context) {}

  void run();
  [[nodiscard]] const std::vector<Check>& checks() const { return checks_; }
  [[nodiscard]] const std::string& url() const { return connection_.url; }
  [[nodiscard]] ExitCode exit_code() const { return exit_code_; }

 private:
  bool check_settings();
  bool check_name();
  bool check_tcp();
  bool check_tls();
  bool check_health();
  bool check_token();
  bool check_clock();
  bool check_agents();

  [[nodiscard]] std::chrono::milliseconds step_timeout() const {
    return context_.options.timeout.value_or(default_step_timeout);
  }
  bool ok(std::string name, std::string detail);
  bool warn(std::string name, std::string detail, std::string remedy);
  bool failed(std::string name, std::string detail, std::string remedy, ExitCode code);
  bool skipped(std::string name, std::string detail);

  Context& context_;
  Connection connection_;
  Endpoint endpoint_;
  std::optional<GatewayClient> gateway_;
  TcpConnection tcp_;
  WallTime asked_at_;
  WallTime answered_at_;
  std::optional<WallTime> gateway_time_;
  std::vector<Check> checks_;
  ExitCode exit_code_ = ExitCode::success;
};

bool Examination::ok(std::string name, std::string detail) {
  checks_.push_back({std::move(name), CheckStatus::ok, std::move(detail), ""});
  return true;
}

bool Examination::skipped(std::string name, std::string detail) {
  checks_.push_back({std::move(name), CheckStatus::skipped, std::move(detail), ""});
  return true;
}

bool Examination::warn(std::string name, std::string detail, std::string remedy) {
  checks_.push_back({std::move(name), CheckStatus::warning, std::move(detail), std::move(remedy)});
  if (exit_code_ == ExitCode::success) exit_code_ = ExitCode::error;
  return true;
}

bool Examination::failed(std::string name, std::string detail, std::string remedy, ExitCode code) {
  checks_.push_back({std::move(name), CheckStatus::failed, std::move(detail), std::move(remedy)});
  exit_code_ = code;
  return false;
}

/// The proxy that the HTTP client would use for this endpoint, without its password; empty when none.
std::string proxy_for(const Endpoint& endpoint, const Environment& environment) {
  if (net::http::is_loopback_host(endpoint.host)) return "";
  // libcurl reads HTTP_PROXY in lower case only, because servers put request headers into such variables.
  std::optional<std::string> proxy = environment(endpoint.scheme + "_proxy");
  if (!proxy && endpoint.scheme == "https") proxy = environment("HTTPS_PROXY");
  if (!proxy) proxy = environment("all_proxy");
  if (!proxy) proxy = environment("ALL_PROXY");
  if (!proxy) return "";
  std::string exceptions = environment("no_proxy").value_or(environment("NO_PROXY").value_or(""));
  for (std::string_view entry : split(exceptions, ',')) {
    entry = trim(entry);
    if (entry.starts_with('.')) entry.remove_prefix(1);
    bool matches = entry == "*" ||
                   (!entry.empty() && (endpoint.host == entry || endpoint.host.ends_with("." + std::string(entry))));
    if (matches) return "";
  }
  size_t at = proxy->rfind('@');
  return at == std::string::npos ? *proxy : proxy->substr(at + 1);
}

std::optional<WallTime> parse_http_date(std::string_view text) {
  std::tm parts{};
  const char* end = ::strptime(std::string(text).c_str(), "%a, %d %b %Y %H:%M:%S GMT", &parts);
  if (end == nullptr) return std::nullopt;
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

bool Examination::check_settings() {
  auto connection = resolve_connection(context_.options, context_.environment);
  if (!connection) {
    return failed("settings", connection.error().message, "correct the option, the variable or the profile named here",
                  ExitCode::usage);
  }
  connection_ = *std::move(connection);
  auto endpoint = endpoint_of(connection_.url);
  if (!endpoint) return failed("settings", endpoint.error().message, "use https://HOST:PORT", ExitCode::usage);
  endpoint_ = *std::move(endpoint);
  gateway_.emplace(connection_, step_timeout(), -1);
  std::string detail = fmt::format("{} (from {}); ", connection_.url, connection_.url_source);
  detail += connection_.token.empty() ? std::string("no token") : "token from " + connection_.token_source;
  if (!connection_.verify_tls)
    return warn("settings", detail + "; --insecure", "use --cacert FILE instead of --insecure");
  return ok("settings", detail);
}

bool Examination::check_name() {
  if (std::string proxy = proxy_for(endpoint_, context_.environment); !proxy.empty()) {
    return skipped("name", "the proxy " + proxy + " resolves it");
  }
  auto addresses = resolve(endpoint_);
  if (!addresses) {
    return failed("name", addresses.error().message, "check the host in the URL, and this machine's DNS",
                  ExitCode::unreachable);
  }
  return ok("name", endpoint_.host + " is " + join(*addresses, ", "));
}

bool Examination::check_tcp() {
  if (!proxy_for(endpoint_, context_.environment).empty()) return skipped("tcp", "a proxy connects");
  auto connection = connect_tcp(endpoint_, step_timeout());
  if (!connection) {
    bool is_timeout = connection.error().code == ErrorCode::timed_out;
    return failed("tcp", fmt::format("port {}: {}", endpoint_.port, connection.error().message),
                  is_timeout ? "a firewall drops the packets, or the machine is off"
                             : "start the gateway, or check the port in the URL (http_addr in its configuration)",
                  ExitCode::unreachable);
  }
  tcp_ = *std::move(connection);
  return ok("tcp", fmt::format("connected to {} port {} in {:.1f} ms", tcp_.address, endpoint_.port,
                               static_cast<double>(tcp_.took.count()) / 1000));
}

bool Examination::check_tls() {
  if (endpoint_.scheme != "https") return skipped("tls", "plain http");
  if (!tcp_.fd) return skipped("tls", "a proxy connects");
  auto report = inspect_tls(tcp_, endpoint_, connection_.ca_certificate_path, step_timeout());
  tcp_.fd.reset();
  if (!report) {
    return failed("tls", report.error().message,
                  "check that the port is the gateway's https port, and the file of --cacert", ExitCode::unreachable);
  }
  std::string names = join(report->names, ", ");
  std::string detail = fmt::format("{}, {}; certificate {} for {}, until {} ({} days)", report->protocol,
                                   report->cipher, report->subject, names.empty() ? "no name" : names,
                                   report->not_after.substr(0, 10), report->days_left);
  if (!report->problem.empty() && connection_.verify_tls) {
    std::string remedy =
        report->is_wrong_name ? "use one of the certificate's names in the URL, or add this one to the certificate"
        : report->is_expired
            ? "renew the certificate, and check both clocks"
            : fmt::format(
                  "compare the SHA-256 fingerprint {} on the gateway, then set MYRMEX_CACERT or --cacert to its "
                  "certificate (a generated one is in the folder tls of its state_dir)",
                  report->sha256);
    return failed("tls", report->problem + ": " + detail, std::move(remedy), ExitCode::unreachable);
  }
  if (report->days_left < certificate_days_to_warn) {
    return warn("tls", detail, "the certificate ends soon: renew it");
  }
  return ok("tls", detail);
}

bool Examination::check_health() {
  auto response = gateway_->get("/healthz");
  if (!response) {
    Failure failure = gateway_->failure_from(response.error(), false);
    return failed("health", failure.message, "see the gateway's own log", failure.code);
  }
  if (response->status != 200) {
    return failed("health", fmt::format("GET /healthz answers HTTP {}", response->status),
                  "another program may listen there, or a proxy stands in between", ExitCode::unreachable);
  }
  return ok("health", "the gateway answers");
}

bool Examination::check_token() {
  if (connection_.token.empty()) {
    return failed("token", "none was given", "set MYRMEX_TOKEN, or use --token-file FILE or a profile",
                  ExitCode::not_authenticated);
  }
  asked_at_ = context_.clock->wall_now();
  auto response = gateway_->get("/api/whoami");
  // Gateways of the reference do not know whoami; the status shows whether the token is good.
  if (response && response->status == 404) response = gateway_->get("/api/status");
  answered_at_ = context_.clock->wall_now();
  if (!response) {
    Failure failure = gateway_->failure_from(response.error(), false);
    return failed("token", failure.message, "see the gateway's own log", failure.code);
  }
  if (response->status != 200) {
    Failure failure = gateway_->failure_from(*response, false);
    return failed("token", failure.message,
                  fmt::format("the token from {} is not one that this gateway accepts", connection_.token_source),
                  failure.code);
  }
  gateway_time_ = parse_http_date(response->header("date"));
  auto members = json::parse_object(response->body);
  auto text = [&members](std::string_view key) {
    auto raw = members ? json::find(*members, key) : std::nullopt;
    return raw ? json::decode_string(*raw).value_or("") : "";
  };
  if (auto time = parse_rfc3339(text("time"))) gateway_time_ = *time;
  std::string role = text("role");
  if (role.empty()) return ok("token", "accepted");
  ok("token", "accepted as " + text("principal"));
  return ok("role", role == "read-only" ? "read-only: may look, but not call tools" : role + ": may call tools");
}

bool Examination::check_clock() {
  if (!gateway_time_) return skipped("clock", "the gateway does not tell its time");
  auto middle = asked_at_ + (answered_at_ - asked_at_) / 2;
  auto difference = std::chrono::duration_cast<std::chrono::seconds>(*gateway_time_ - middle);
  std::string detail = fmt::format("the gateway's clock is {} s {} this one", std::abs(difference.count()),
                                   difference.count() < 0 ? "behind" : "ahead of");
  if (std::chrono::abs(difference) > tolerated_clock_difference) {
    return warn("clock", detail, "set the clocks (NTP): tokens and certificates depend on them");
  }
  return ok("clock", std::chrono::abs(difference).count() <= 1 ? "the clocks agree" : detail);
}

bool Examination::check_agents() {
  auto body = gateway_->get_json("/api/status");
  if (!body) return failed("agents", body.error().message, "see the gateway's own log", body.error().code);
  auto fleet = parse_fleet(*body);
  if (!fleet) return failed("agents", fleet.error().message, "update the gateway or this program", ExitCode::error);
  auto online = std::ranges::count_if(fleet->agents, &AgentView::online);
  std::string detail = fmt::format("{} online", online);
  std::vector<std::string> offline;
  for (const AgentView& agent : fleet->agents) {
    if (!agent.online) offline.push_back(agent.id);
  }
  if (!offline.empty()) {
    detail += fmt::format(", {} offline: {}", offline.size(), cut_list(offline, ", ", widest_offline_list));
  }
  if (online == 0) return warn("agents", detail, "start myrmex-agent on a server; its log says what it waits for");
  return ok("agents", detail);
}

void Examination::run() {
  using Step = bool (Examination::*)();
  constexpr std::array<std::pair<std::string_view, Step>, 8> steps = {{{"settings", &Examination::check_settings},
                                                                       {"name", &Examination::check_name},
                                                                       {"tcp", &Examination::check_tcp},
                                                                       {"tls", &Examination::check_tls},
                                                                       {"health", &Examination::check_health},
                                                                       {"token", &Examination::check_token},
                                                                       {"clock", &Examination::check_clock},
                                                                       {"agents", &Examination::check_agents}}};
  bool goes_on = true;
  for (const auto& [name, step] : steps) {
    if (goes_on) {
      goes_on = (this->*step)();
    } else {
      skipped(std::string(name), "not tried");
    }
  }
}

Style style_of(CheckStatus status) {
  switch (status) {
    case CheckStatus::ok:
      return Style::good;
    case CheckStatus::warning:
      return Style::warning;
    case CheckStatus::failed:
      return Style::bad;
    case CheckStatus::skipped:
      return Style::faint;
  }
  return Style::plain;
}

std::string as_text(const Examination& examination, bool color) {
  std::string text;
  for (const Check& check : examination.checks()) {
    text += styled(fmt::format("{:<7}", to_string(check.status)), style_of(check.status), color);
    text += fmt::format("   {:<8}   {}\n", check.name, escape_for_terminal(check.detail));
    if (!check.remedy.empty()) text += fmt::format("{:21}-> {}\n", "", escape_for_terminal(check.remedy));
  }
  return text;
}

std::string as_json(const Examination& examination) {
  std::string text = fmt::format("{{\"ok\":{},\"url\":", examination.exit_code() == ExitCode::success);
  json::append_string(text, examination.url());
  text += ",\"checks\":[";
  for (size_t k = 0; k < examination.checks().size(); ++k) {
    const Check& check = examination.checks()[k];
    if (k > 0) text += ',';
    text += "{\"name\":" + json::encode_string(check.name);
    text += ",\"status\":" + json::encode_string(to_string(check.status));
    text += ",\"detail\":" + json::encode_string(check.detail);
    if (!check.remedy.empty()) text += ",\"remedy\":" + json::encode_string(check.remedy);
    text += '}';
  }
  return pretty_json(text + "]}");
}

}  // namespace

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  std::tm parts{};
  std::string copy(text);
  const char* rest = ::strptime(copy.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return std::nullopt;
  std::string_view end(rest);
  if (end.starts_with('.')) {
    end.remove_prefix(1);
    end.remove_prefix(std::min(end.find_first_not_of("0123456789"), end.size()));
  }
  if (end != "Z") return std::nullopt;
  return std::chrono::system_clock::from_time_t(::timegm(&parts));
}

ExitCode run_doctor(Context& context) {
  Examination examination(context);
  examination.run();
  context.output.write(context.format.json ? as_json(examination) : as_text(examination, context.format.color));
  return examination.exit_code();
}

}  // namespace hive::cli
