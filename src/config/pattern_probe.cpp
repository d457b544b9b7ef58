#include "config/pattern_probe.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string>

#include "base/strings.h"

namespace hive::config {

namespace {

using Tokens = std::vector<std::string>;

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// The parts of "scheme://host:port/rest" in a word.
struct Url {
  std::string scheme;  ///< with "://"
  std::string host;
  std::string port;  ///< with ":", or empty
  std::string rest;
};

std::optional<Url> split_url(const std::string& word) {
  std::size_t start = word.find("://");
  if (start == std::string::npos) return std::nullopt;
  start += 3;
  std::size_t end = std::min(word.find_first_of("/?#", start), word.size());
  std::string authority = word.substr(start, end - start);
  std::size_t colon = authority.rfind(':');
  if (authority.ends_with(']') || colon == std::string::npos) colon = authority.size();
  return Url{.scheme = word.substr(0, start),
             .host = authority.substr(0, colon),
             .port = authority.substr(colon),
             .rest = word.substr(end)};
}

/// For a program: the options whose number is a time limit, where 0 means none.
struct TimeLimitOptions {
  std::string_view program;
  std::string_view options;
};
constexpr TimeLimitOptions time_limits[] = {
    {"curl", " --max-time -m --connect-timeout "},
    {"wget", " --timeout -T --read-timeout --connect-timeout "},
    {"dig", " +timeout "},
    {"ping", " -W -w "},
};

constexpr std::string_view port_programs[] = {"nc", "ncat", "netcat", "telnet", "socat"};

/// Asks the pattern, and keeps the first proof of each kind.
class Prober {
 public:
  Prober(const Pattern& pattern, std::string_view program) : pattern_(pattern), program_(program) {}

  std::vector<Finding> findings() { return std::move(findings_); }

  /// Returns whether everything is admitted, so that there is nothing more to ask.
  bool probe_anything() {
    return report("anything", "admits any arguments at all; list the argument lines that are needed",
                  "-zz --zz=/etc/shadow ../zz http://evil.example/?zz");
  }

  void probe(const std::string& sample) {
    Tokens tokens;
    for (std::string_view token : split(sample, ' ')) {
      tokens.emplace_back(token);
    }
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if (probe_any_word(tokens, i)) continue;
      probe_option(tokens, i);
      probe_further_arguments(tokens, i);
      probe_path(tokens, i);
      probe_url(tokens, i);
      probe_port(tokens, i);
      probe_time_limit(tokens, i);
      probe_localhost(tokens, i);
    }
  }

 private:
  bool report(std::string_view code, std::string_view message, const std::string& line) {
    if (!pattern_.admits(line)) return false;
    bool known = std::ranges::any_of(findings_, [&](const Finding& finding) { return finding.code == code; });
    if (!known) findings_.push_back({std::string(code), std::string(message), line});
    return true;
  }

  bool report(std::string_view code, std::string_view message, Tokens tokens, std::size_t at, std::string word) {
    tokens[at] = std::move(word);
    return report(code, message, join(tokens, " "));
  }

  bool probe_any_word(const Tokens& tokens, std::size_t at) {
    return report("any_word",
                  "an operand may be any word: an option, any path, any URL; name the characters it consists of, the "
                  "first one without \"-\"",
                  tokens, at, "--zz=http://evil.example/../etc/shadow");
  }

  void probe_option(const Tokens& tokens, std::size_t at) {
    // After "--" a word is an operand whatever it begins with.
    bool ended = std::ranges::find(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(at), "--") !=
                 tokens.begin() + static_cast<std::ptrdiff_t>(at);
    if (tokens[at].starts_with('-') || ended) return;
    for (std::string_view word : {"--zz", "-zz", "--zz=/tmp/zz", "-z", "--5", "-5"}) {
      if (report("option",
                 "an operand may begin with \"-\", so callers can pass options of their own; let it begin with "
                 "[A-Za-z0-9], or put \"--\" before it",
                 tokens, at, std::string(word))) {
        return;
      }
    }
  }

  void probe_further_arguments(const Tokens& tokens, std::size_t at) {
    report(
        "further_arguments",
        "a blank is admitted inside an operand, so callers can add further arguments; use \\S or name the characters",
        tokens, at, tokens[at] + " zz");
  }

  void probe_path(const Tokens& tokens, std::size_t at) {
    const std::string& word = tokens[at];
    std::size_t scheme = word.find("://");
    std::size_t slash = word.find('/', scheme == std::string::npos ? 0 : scheme + 3);
    bool is_url = scheme != std::string::npos;
    std::string_view message = is_url ? "\"..\" is admitted in the path of a URL, so callers leave the part you name"
                                      : "\"..\" is admitted in a path, so callers leave the folder you name";
    if (slash == std::string::npos) {
      if (is_url || word.empty()) return;
      report("path", "admits any path; name the folders", tokens, at, "/etc/shadow");
      report("path", "\"..\" is admitted, so callers choose the folder", tokens, at, "../../etc/shadow");
      return;
    }
    std::size_t last = word.rfind('/');
    for (std::string variant : {word.substr(0, last) + "/../../zz", word + "/../../zz", word.substr(0, last) + "/../zz",
                                word.substr(0, last) + "/.."}) {
      if (report(is_url ? "url_path" : "path", message, tokens, at, std::move(variant))) return;
    }
    if (!is_url) report("path", "admits any path; name the folders", tokens, at, "/etc/shadow");
  }

  void probe_url(const Tokens& tokens, std::size_t at) {
    constexpr std::string_view message =
        "admits other hosts than the ones you mean, so callers can reach or send to any server; write the host out, "
        "with \"\\.\" for its dots, up to the \"/\" or \":\" behind it";
    std::optional<Url> url = split_url(tokens[at]);
    if (!url) {
      if (!tokens[at].empty()) report("url_host", message, tokens, at, "http://evil.example/zz");
      return;
    }
    std::string dotless = url->host;
    std::ranges::replace(dotless, '.', 'x');
    for (const std::string& host :
         {std::string("evil.example"), url->host + ".evil.example", url->host + "@evil.example", dotless}) {
      if (host == url->host) continue;
      if (report("url_host", message, tokens, at, url->scheme + host + url->port + url->rest)) return;
    }
  }

  void probe_port(const Tokens& tokens, std::size_t at) {
    constexpr std::string_view message =
        "admits ports that do not exist (over 65535), which fail in ways that look like an outage; name the ports";
    if (std::optional<Url> url = split_url(tokens[at])) {
      report("port", message, tokens, at, url->scheme + url->host + ":99999" + url->rest);
    } else if (std::ranges::find(port_programs, program_) != std::end(port_programs) && at > 0 &&
               is_number(tokens[at]) && !tokens[at - 1].starts_with('-')) {
      report("port", message, tokens, at, "99999");
    }
  }

  void probe_time_limit(const Tokens& tokens, std::size_t at) {
    for (const TimeLimitOptions& row : time_limits) {
      if (row.program != program_) continue;
      auto is_limit = [&row](std::string_view option) { return row.options.contains(fmt::format(" {} ", option)); };
      constexpr std::string_view message =
          "a time limit of 0 is admitted, which means none: only the entry's timeout_seconds ends it; let the number "
          "begin with [1-9]";
      std::size_t equals = tokens[at].find('=');
      if (at > 0 && is_number(tokens[at]) && is_limit(tokens[at - 1])) {
        (void)(report("no_time_limit", message, tokens, at, "0") || report("no_time_limit", message, tokens, at, "00"));
      } else if (equals != std::string::npos && is_limit(tokens[at].substr(0, equals))) {
        report("no_time_limit", message, tokens, at, tokens[at].substr(0, equals) + "=0");
      }
    }
  }

  void probe_localhost(const Tokens& tokens, std::size_t at) {
    std::string word = tokens[at];
    std::size_t place = word.find("127.0.0.1");
    if (place != std::string::npos) word.replace(place, 9, "localhost");
    std::size_t name = word.find("localhost");
    if (name == std::string::npos) return;
    bool whole_name = (name == 0 || word[name - 1] == '/' || word[name - 1] == '@' || word[name - 1] == '=') &&
                      (name + 9 == word.size() || word[name + 9] == ':' || word[name + 9] == '/');
    if (!whole_name) return;
    report("localhost",
           "localhost resolves to ::1 first, so a service that listens on IPv4 alone is reported down while it is "
           "healthy; write 127\\.0\\.0\\.1",
           tokens, at, std::move(word));
  }

  const Pattern& pattern_;
  std::string_view program_;
  std::vector<Finding> findings_;
};

bool ends_with_anchor(std::string_view text) {
  return text.ends_with("\\z") || (text.ends_with('$') && !text.ends_with("\\$"));
}

}  // namespace

std::vector<Finding> probe_pattern(const Pattern& pattern, const std::vector<std::string>& samples,
                                   std::string_view program) {
  Prober prober(pattern, program);
  if (prober.probe_anything()) return prober.findings();
  for (const std::string& sample : samples) {
    prober.probe(sample);
  }
  return prober.findings();
}

std::vector<Finding> review_anchors(const PatternOutline& outline) {
  if (outline.alternatives.empty()) return {};
  std::size_t anchors = 0;
  for (const std::string& alternative : outline.alternatives) {
    if (alternative.starts_with('^') || alternative.starts_with("\\A")) ++anchors;
    if (ends_with_anchor(alternative)) ++anchors;
  }
  if (anchors == 0 || anchors == outline.alternatives.size() * 2) return {};
  std::string parts;
  for (const std::string& alternative : outline.alternatives) {
    std::string_view part = alternative;
    if (part.starts_with('^')) part.remove_prefix(1);
    if (ends_with_anchor(part)) part.remove_suffix(part.ends_with('$') ? 1 : 2);
    parts += fmt::format("{}{}", parts.empty() ? "" : " or ", quote(part));
  }
  return {{"anchors",
           fmt::format("\"|\" binds weaker than the anchors around it; as every pattern is matched as a whole, exactly "
                       "{} is admitted, and nothing before or after; write ^(...|...)$ to make that plain",
                       parts),
           ""}};
}

}  // namespace hive::config
