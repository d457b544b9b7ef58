#include "cli/settings.h"

#include <algorithm>
#include <cstdlib>

#include <boost/url/parse.hpp>
#include <boost/url/url_view.hpp>

#include "base/file.h"
#include "base/strings.h"
#include "cli/profile.h"
#include "net/http/client.h"

namespace hive::cli {

namespace {

constexpr size_t max_token_bytes = 16384;

Result<std::string> read_token_file(const std::string& path) {
  std::string content = TRY_CONTEXT("token file", read_file(path, max_token_bytes, FileSecrecy::owner_only));
  std::string token(trim(content));
  if (token.empty()) return fail(ErrorCode::invalid_argument, "token file {}: is empty", path);
  return token;
}

/// The value itself stays out of the message.
Result<void> check_token(std::string_view token, std::string_view source) {
  bool is_visible = std::ranges::all_of(token, [](char c) { return c > ' ' && c <= '~'; });
  if (!is_visible || token.size() > max_token_bytes) {
    return fail(ErrorCode::invalid_argument,
                "the token from {} is not one: it must be visible ASCII characters without spaces or line breaks",
                source);
  }
  return {};
}

Result<std::string> normalised_url(std::string url, std::string_view source) {
  while (url.ends_with('/') && !url.ends_with("://"))
    url.pop_back();
  auto parsed = boost::urls::parse_uri(url);
  bool has_scheme = url.starts_with("http://") || url.starts_with("https://");
  if (!has_scheme && url.find("://") == std::string::npos) {
    return fail(ErrorCode::invalid_argument, "{}: {} has no scheme: write https://{}", source, quote(url),
                escape_for_terminal(url));
  }
  if (!parsed || !has_scheme || parsed->encoded_host().empty() || parsed->has_query() || parsed->has_fragment()) {
    return fail(ErrorCode::invalid_argument, "{}: not the URL of a gateway: use the form https://HOST:PORT", source);
  }
  if (parsed->has_userinfo()) {
    return fail(ErrorCode::invalid_argument,
                "{}: a URL must not carry a user or password: give the token by MYRMEX_TOKEN or --token-file", source);
  }
  std::int64_t port = parsed->has_port() ? parse_int64(parsed->port()).value_or(0) : 1;
  if (port < 1 || port > 65535) {
    return fail(ErrorCode::invalid_argument, "{}: the port {} is none: it must be a number from 1 to 65535", source,
                quote(std::string_view(parsed->port()).substr(0, 20)));
  }
  return url;
}

bool is_plaintext_to_elsewhere(const std::string& url) {
  auto parsed = boost::urls::parse_uri(url);
  return parsed && url.starts_with("http://") && !net::http::is_loopback_host(std::string(parsed->encoded_host()));
}

/// Settings that stand in two places; the first one that is set counts.
struct Candidate {
  std::string value;
  std::string source;
};

Candidate first_set(std::initializer_list<Candidate> candidates) {
  for (const Candidate& candidate : candidates) {
    if (!candidate.value.empty()) return candidate;
  }
  return {};
}

/// The profile in use, and how strongly it was asked for.
struct ChosenProfile {
  std::optional<Profile> profile;
  std::string source;
  bool wins_over_environment = false;
  bool applies = false;  ///< its token and certificate may go to the chosen URL
};

Candidate variable(const Environment& environment, std::string_view name) {
  return {environment(name).value_or(""), std::string(name)};
}

Result<ChosenProfile> choose_profile(const GlobalOptions& options, const Environment& environment) {
  Candidate name = first_set({{options.profile, "--profile"}, variable(environment, "MYRMEX_PROFILE")});
  bool must_exist = !name.value.empty();
  if (!must_exist) name.value = "default";
  ChosenProfile chosen;
  chosen.profile =
      TRY(load_profile(profile_file_path(environment), name.value, must_exist, environment("HOME").value_or("")));
  chosen.source = "profile " + name.value;
  chosen.wins_over_environment = name.source == "--profile";
  return chosen;
}

/// Option, environment and profile in the order that counts.
Candidate choose(const ChosenProfile& profile, Candidate option, Candidate variable, const std::string& in_profile) {
  Candidate from_profile{in_profile, profile.source};
  return profile.wins_over_environment ? first_set({std::move(option), std::move(from_profile), std::move(variable)})
                                       : first_set({std::move(option), std::move(variable), std::move(from_profile)});
}

/// A token must not follow the user to a gateway that it was not given for.
Result<bool> profile_applies(const ChosenProfile& chosen, const Connection& connection) {
  if (!chosen.profile) return false;
  if (chosen.profile->url.empty()) return connection.url_source == "default";
  std::string url = TRY(normalised_url(chosen.profile->url, chosen.source));
  return url == connection.url;
}

Result<Candidate> choose_token(const ChosenProfile& profile, const GlobalOptions& options,
                               const Environment& environment) {
  if (!options.token.empty() && !options.token_file.empty()) {
    return fail(ErrorCode::invalid_argument, "--token and --token-file exclude each other");
  }
  if (!options.token.empty()) return Candidate{options.token, "--token"};
  if (!options.token_file.empty()) {
    std::string token = TRY(read_token_file(options.token_file));
    return Candidate{std::move(token), "--token-file"};
  }
  Candidate from_environment = variable(environment, "MYRMEX_TOKEN");
  bool environment_counts = !from_environment.value.empty() && !profile.wins_over_environment;
  if (environment_counts || !profile.applies) return from_environment;
  // The file is only opened when its token is the one to use.
  std::string token = profile.profile->token;
  if (!profile.profile->token_file.empty()) token = TRY(read_token_file(profile.profile->token_file));
  return first_set({{std::move(token), profile.source}, std::move(from_environment)});
}

/// Refuses what would show the token to the network; warns of what weakens the connection.
Result<void> check_secrecy(Connection& connection, const GlobalOptions& options) {
  if (connection.token_source == "--token") {
    connection.warnings.emplace_back(
        "--token shows the token in the process list: use MYRMEX_TOKEN, --token-file or a profile");
  }
  bool travels_in_the_open = !connection.token.empty() && is_plaintext_to_elsewhere(connection.url);
  if (travels_in_the_open && !options.insecure) {
    return fail(
        ErrorCode::invalid_argument,
        "{} is not encrypted and the token would travel in the open: use https:// (or --insecure, if you accept "
        "that)",
        escape_for_terminal(connection.url));
  }
  if (travels_in_the_open) {
    connection.warnings.push_back("the token travels unencrypted to " + escape_for_terminal(connection.url));
  } else if (options.insecure && connection.url.starts_with("https://")) {
    connection.warnings.emplace_back("--insecure: the gateway's certificate is not checked");
  }
  return {};
}

}  // namespace

Environment process_environment() {
  return [](std::string_view name) -> std::optional<std::string> {
    const char* value = std::getenv(std::string(name).c_str());
    if (value == nullptr || *value == '\0') return std::nullopt;
    return std::string(value);
  };
}

std::string profile_file_path(const Environment& environment) {
  if (auto folder = environment("XDG_CONFIG_HOME")) return *folder + "/myrmex/config.json";
  if (auto home = environment("HOME")) return *home + "/.config/myrmex/config.json";
  return "";
}

Result<Connection> resolve_connection(const GlobalOptions& options, const Environment& environment) {
  ChosenProfile profile = TRY(choose_profile(options, environment));
  Candidate url = choose(profile, {options.url, "--url"}, variable(environment, "MYRMEX_URL"),
                         profile.profile ? profile.profile->url : "");
  if (url.value.empty()) url = {std::string(default_url), "default"};

  Connection connection;
  connection.url = TRY(normalised_url(url.value, url.source));
  connection.url_source = url.source;
  profile.applies = TRY(profile_applies(profile, connection));

  Candidate token = TRY(choose_token(profile, options, environment));
  TRY(check_token(token.value, token.source));
  connection.token = token.value;
  connection.token_source = token.source;

  connection.ca_certificate_path =
      choose(profile, {options.ca_certificate_path, "--cacert"}, variable(environment, "MYRMEX_CACERT"),
             profile.applies ? profile.profile->ca_certificate_path : "")
          .value;
  connection.verify_tls = !options.insecure;
  TRY(check_secrecy(connection, options));
  return connection;
}

}  // namespace hive::cli
