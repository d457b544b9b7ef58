#include "net/vault/vault.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "net/http/client.h"
#include "net/vault/answer.h"

namespace hive::net::vault {

namespace {

constexpr std::size_t max_answer_bytes = std::size_t{1} << 20;
constexpr int max_redirects = 2;

bool is_visible_ascii(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > 0x20 && c < 0x7f; });
}

/// "host:port" of an address without what could be a secret.
std::string authority_of(std::string_view address) {
  std::size_t scheme = address.find("://");
  std::string_view rest = scheme == std::string_view::npos ? address : address.substr(scheme + 3);
  return escape_for_terminal(rest.substr(0, rest.find_first_of("/?#")));
}

Result<void> check_address(std::string_view address) {
  bool is_https = address.starts_with("https://");
  if (!is_https && !address.starts_with("http://")) {
    return fail(ErrorCode::invalid_argument, "VAULT_ADDR is not a URL; write https://HOST:8200");
  }
  std::string_view rest = address.substr(is_https ? 8 : 7);
  if (rest.empty() || !is_visible_ascii(rest) || rest.find_first_of("/?#@") != std::string_view::npos) {
    return fail(ErrorCode::invalid_argument, "VAULT_ADDR must be scheme, host and port alone, as in https://HOST:8200");
  }
  std::string_view host = rest.starts_with('[') ? rest.substr(0, rest.find(']') + 1) : rest.substr(0, rest.find(':'));
  if (!is_https && !http::is_loopback_host(host)) {
    return fail(ErrorCode::invalid_argument,
                "VAULT_ADDR names {} without TLS, and the token would cross the network; write https://",
                authority_of(address));
  }
  return {};
}

// What goes into the URL: the path is sent as it is written, so nothing in it may mean anything else to the server.
Result<void> check_path(std::string_view path) {
  auto is_sound = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           std::string_view("-._~/+@:=,").contains(c);
  };
  bool sound = !path.empty() && path.size() <= 512 && std::ranges::all_of(path, is_sound);
  for (std::string_view segment : split(path, '/')) {
    sound = sound && !segment.empty() && segment != "." && segment != "..";
  }
  if (sound) return {};
  return fail(ErrorCode::invalid_argument,
              "the path must be names with single \"/\" between them, without one in front, as in secret/data/gateway");
}

/// The URL of a redirect if it stays on the server; standby nodes answer with one to the active node.
std::optional<std::string> same_server(std::string_view location, const std::string& address) {
  if (location.starts_with('/') && !location.starts_with("//")) return address + std::string(location);
  if (location.starts_with(address + "/")) return std::string(location);
  return std::nullopt;
}

Result<http::ClientResponse> ask(const Settings& settings, const std::string& path) {
  http::ClientRequest request;
  request.url = settings.address + "/v1/" + path;
  // The second header is asked for by agents and proxies of Vault, against requests that a browser was tricked into.
  request.headers = {{"X-Vault-Token", settings.token.reveal()}, {"X-Vault-Request", "true"}};
  if (!settings.namespace_name.empty()) request.headers.emplace_back("X-Vault-Namespace", settings.namespace_name);
  request.connect_timeout = settings.timeout;
  request.timeout = settings.timeout;
  request.max_response_bytes = max_answer_bytes;
  request.ca_certificate_path = settings.ca_certificate_path;
  for (int redirects = 0; redirects <= max_redirects; ++redirects) {
    http::ClientResponse response = TRY(http::perform(request));
    if (response.status != 307 && response.status != 308) return response;
    std::optional<std::string> next = same_server(response.header("location"), settings.address);
    if (!next) {
      return fail(ErrorCode::unavailable,
                  "{}: redirects to another server, which must not get the token; set VAULT_ADDR to the active node",
                  authority_of(settings.address));
    }
    request.url = *std::move(next);
  }
  return fail(ErrorCode::unavailable, "{}: redirects again and again", authority_of(settings.address));
}

/// The state of a source that is made once for a load.
class LazyClient {
 public:
  explicit LazyClient(config::SecretSources sources) : sources_(std::move(sources)) {}

  Result<std::string> read(const std::string& path, const std::string& field) {
    std::call_once(once_, [this] {
      Result<Settings> settings = settings_from(sources_);
      if (settings) {
        client_ = std::make_unique<Client>(*std::move(settings));
      } else {
        error_ = settings.error();
      }
    });
    if (client_ == nullptr) return std::unexpected(error_);
    return client_->read(path, field);
  }

 private:
  config::SecretSources sources_;
  std::once_flag once_;
  std::unique_ptr<Client> client_;
  Error error_;
};

}  // namespace

Result<Settings> settings_from(const config::SecretSources& sources) {
  auto variable = [&](const char* name) { return std::string(trim(sources.environment(name).value_or(""))); };
  Settings settings;
  if (std::string address = variable("VAULT_ADDR"); !address.empty()) {
    while (address.ends_with('/')) {
      address.pop_back();
    }
    settings.address = std::move(address);
  }
  TRY(check_address(settings.address));
  std::string token = variable("VAULT_TOKEN");
  std::string token_file = variable("VAULT_TOKEN_FILE");
  if (token.empty() && token_file.empty()) {
    return fail(ErrorCode::not_found,
                "neither VAULT_TOKEN nor VAULT_TOKEN_FILE is set; set one in the service's environment");
  }
  if (token.empty()) token = std::string(trim(TRY_CONTEXT("VAULT_TOKEN_FILE", sources.file(token_file))));
  if (token.empty() || !is_visible_ascii(token)) {
    return fail(ErrorCode::invalid_argument, "the Vault token is empty, or has blanks or control characters in it");
  }
  settings.token = config::Secret(std::move(token));
  settings.namespace_name = variable("VAULT_NAMESPACE");
  if (!is_visible_ascii(settings.namespace_name)) {
    return fail(ErrorCode::invalid_argument, "VAULT_NAMESPACE has blanks or control characters in it");
  }
  settings.ca_certificate_path = variable("VAULT_CACERT");
  return settings;
}

Result<std::string> Client::read(const std::string& path, const std::string& field) {
  TRY(check_path(path));
  std::lock_guard lock(mutex_);
  auto known = answers_.find(path);
  if (known == answers_.end()) known = answers_.emplace(path, fetch(path)).first;
  if (!known->second) return std::unexpected(known->second.error());
  Result<std::string> value = field_of(*known->second, field);
  if (value) return value;
  return fail(value.error().code, "{}: {}", authority_of(settings_.address), value.error().message);
}

Result<std::string> Client::fetch(const std::string& path) {
  if (unreachable_) return std::unexpected(*unreachable_);
  Result<http::ClientResponse> response = ask(settings_, path);
  if (!response) {
    // Ten secrets must not wait ten times for a server that is away.
    if (response.error().code != ErrorCode::resource_exhausted) unreachable_ = response.error();
    return std::unexpected(response.error());
  }
  Result<void> judged = judge_status(response->status, response->body);
  if (!judged) {
    return fail(judged.error().code, "{}: {}", authority_of(settings_.address), judged.error().message);
  }
  return std::move(response->body);
}

config::SecretSources with_vault(const config::SecretSources& sources) {
  config::SecretSources extended = sources;
  auto client = std::make_shared<LazyClient>(sources);
  extended.vault = [client](const std::string& path, const std::string& field) { return client->read(path, field); };
  return extended;
}

}  // namespace hive::net::vault
