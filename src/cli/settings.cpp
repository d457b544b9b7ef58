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
  auto variable = [&environment](std::string_view name) {
    return Candidate{environment(name).value_or(""), std::string(name)};
  };
  Candidate profile_name =
      first_set({{options.profile, "--profile"}, variable("MYRMEX_PROFILE"), {"default", "the default"}});
  bool profile_is_named = profile_name.source != "the default";
  bool profile_is_asked_for = profile_name.source == "--profile";
  std::optional<Profile> profile = TRY(load_profile(profile_file_path(environment), profile_name.value,
                                                    profile_is_named, environment("HOME").value_or("")));
  std::string profile_source = fmt::format("profile {}", profile_name.value);

  Connection connection;
  Candidate profile_url{profile ? profile->url : "", profile_source};
  Candidate given_url = profile_is_asked_for ? first_set({{options.url, "--url"}, profile_url, variable("MYRMEX_URL")})
                                             : first_set({{options.url, "--url"}, variable("MYRMEX_URL"), profile_url});
  if (given_url.value.empty()) given_url = {std::string(default_url), "default"};
  connection.url = TRY(normalised_url(given_url.value, given_url.source));
  connection.url_source = given_url.source;

  // A token must not follow the user to a gateway that it was not given for.
  bool profile_applies =
      profile && (profile->url.empty() ? given_url.source == "default"
                                       : TRY(normalised_url(profile->url, profile_source)) == connection.url);
  if (!options.token.empty() && !options.token_file.empty()) {
    return fail(ErrorCode::invalid_argument, "--token and --token-file exclude each other");
  }
  Candidate token;
  if (!options.token_file.empty()) {
    token = {TRY(read_token_file(options.token_file)), "--token-file"};
  } else if (!options.token.empty()) {
    token = {options.token, "--token"};
    connection.warnings.emplace_back(
        "--token shows the token in the process list: use MYRMEX_TOKEN, --token-file or a profile");
  } else {
    Candidate profile_token;
    bool environment_wins = !profile_is_asked_for && environment("MYRMEX_TOKEN");
    if (profile_applies && !environment_wins) {
      profile_token = {profile->token_file.empty() ? profile->token : TRY(read_token_file(profile->token_file)),
                       profile_source};
    }
    token = first_set({profile_token, variable("MYRMEX_TOKEN")});
  }
  TRY(check_token(token.value, token.source));
  connection.token = token.value;
  connection.token_source = token.source;

  Candidate profile_ca{profile_applies ? profile->ca_certificate_path : "", profile_source};
  Candidate ca = profile_is_asked_for
                     ? first_set({{options.ca_certificate_path, "--cacert"}, profile_ca, variable("MYRMEX_CACERT")})
                     : first_set({{options.ca_certificate_path, "--cacert"}, variable("MYRMEX_CACERT"), profile_ca});
  connection.ca_certificate_path = ca.value;
  connection.verify_tls = !options.insecure;
  if (!connection.token.empty() && is_plaintext_to_elsewhere(connection.url)) {
    if (!options.insecure) {
      return fail(ErrorCode::invalid_argument,
                  "{} is not encrypted and the token would travel in the open: use https:// (or --insecure, if you "
                  "accept that)",
                  escape_for_terminal(connection.url));
    }
    connection.warnings.push_back(
        fmt::format("the token travels unencrypted to {}", escape_for_terminal(connection.url)));
  } else if (options.insecure && connection.url.starts_with("https://")) {
    connection.warnings.emplace_back("--insecure: the gateway's certificate is not checked");
  }
  return connection;
}

}  // namespace hive::cli
