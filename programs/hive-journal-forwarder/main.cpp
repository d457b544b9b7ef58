#include <csignal>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/file.h"
#include "base/strings.h"
#include "base/unique_fd.h"
#include "forwarder/forwarder.h"

namespace {

constexpr int failed = 1;
constexpr int bad_usage = 2;
constexpr size_t max_small_file = 4096;

constexpr std::string_view help_text =
    R"(hive-journal-forwarder: sends this machine's journal to an OpenTelemetry collector (OTLP/HTTP, JSON)

Usage:
  hive-journal-forwarder --endpoint URL --position FILE [OPTIONS]

Options:
  --endpoint URL       the collector; /v1/logs is added
  --position FILE      where it notes how far it has come; in a folder that outlives this machine's root
  --journal FOLDER     the journal's files (/var/log/journal)
  --service-name NAME  service.name of the entries (this machine's host name)
  --token-file FILE    bearer token, readable by its owner alone
  --cacert FILE        certificate to trust, PEM (the system's store)
  --version, --help

An entry counts as sent when the collector has answered 2xx; only then the position is written. While the collector is
away, entries wait in the journal. SIGTERM sends what is left, for up to ten seconds. Each record carries log.record.uid:
after a crash one batch may come twice, with the same ids.

Exit codes: 0 told to stop, 1 the journal or the position cannot be used, 2 wrong command line.

Example:
  hive-journal-forwarder --endpoint http://10.42.0.1:4318 --position /agents/iris/state/journal-position.json
)";

std::string small_file(const std::string& path) {
  auto text = hive::read_file(path, max_small_file);
  return text ? std::string(hive::trim(*text)) : std::string();
}

hive::Result<hive::forwarder::Options> parse(int argc, char** argv) {
  hive::forwarder::Options options;
  options.resource = {
      .service_name = {}, .host_name = small_file("/etc/hostname"), .machine_id = small_file("/etc/machine-id")};
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    const size_t equals = std::min(word.find('='), word.size());
    std::string_view name = word.substr(0, equals);
    std::string* value = name == "--endpoint"       ? &options.endpoint
                         : name == "--position"     ? &options.position_path
                         : name == "--journal"      ? &options.journal
                         : name == "--service-name" ? &options.resource.service_name
                         : name == "--token-file"   ? &options.token_path
                         : name == "--cacert"       ? &options.ca_certificate
                                                    : nullptr;
    if (value == nullptr) return hive::fail(hive::ErrorCode::invalid_argument, "unknown option {}", hive::quote(word));
    if (equals < word.size()) {
      *value = word.substr(equals + 1);
    } else if (i + 1 < argc) {
      *value = argv[++i];
    } else {
      return hive::fail(hive::ErrorCode::invalid_argument, "{} needs a value", name);
    }
  }
  while (options.endpoint.ends_with('/'))
    options.endpoint.pop_back();
  if (!options.endpoint.starts_with("http://") && !options.endpoint.starts_with("https://")) {
    return hive::fail(hive::ErrorCode::invalid_argument, "--endpoint needs a URL that begins http:// or https://");
  }
  if (options.position_path.empty()) return hive::fail(hive::ErrorCode::invalid_argument, "--position is missing");
  if (options.resource.service_name.empty()) options.resource.service_name = options.resource.host_name;
  return options;
}

}  // namespace

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string_view word = argv[i];
    if (word == "--help" || word == "-h") {
      fmt::print("{}", help_text);
      return 0;
    }
    if (word == "--version") {
      fmt::print("hive-journal-forwarder {}\n", HIVE_VERSION);
      return 0;
    }
  }
  auto options = parse(argc, argv);
  if (!options) {
    fmt::print(stderr, "hive-journal-forwarder: {}\n\n{}", options.error().message, help_text);
    return bad_usage;
  }
  std::signal(SIGPIPE, SIG_IGN);
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  hive::UniqueFd stop(::signalfd(-1, &signals, SFD_CLOEXEC));
  if (!stop) {
    fmt::print(stderr, "hive-journal-forwarder: {}\n", hive::system_error(errno, "signalfd").message);
    return failed;
  }
  auto done = hive::forwarder::forward(*options, hive::forwarder::http_sender(*options), stop.get());
  if (done) return 0;
  fmt::print(stderr, "hive-journal-forwarder: {}\n", hive::escape_for_terminal(done.error().message));
  return failed;
}
