// Many agents in one process, through the product's own SSH client: they answer tools/list and ping, and otherwise do
// nothing. Shows what an idle tunnel costs the gateway.
//
//   idle_agents keys FOLDER COUNT          makes idle-1 to idle-COUNT and prints their authorized_keys lines
//   idle_agents run FOLDER COUNT HOST PORT HOST_KEY_FILE
//                                          connects them, prints "ready COUNT" once all are, and stays until its
//                                          standard input ends
#include <array>
#include <atomic>
#include <charconv>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <poll.h>
#include <unistd.h>

#include "base/file.h"
#include "base/result.h"
#include "base/strings.h"
#include "crypto/sha256.h"
#include "crypto/ssh_key.h"
#include "net/runtime/runtime.h"
#include "net/ssh/client.h"
#include "protocol/agent_protocol.h"
#include "protocol/tools.h"

namespace {

using namespace hive;

std::string name_of(int number) {
  return "idle-" + std::to_string(number);
}

/// Answers like an agent that has nothing to do.
class IdleAgent final : public net::ssh::LineChannel::Handler {
 public:
  IdleAgent(std::shared_ptr<net::ssh::LineChannel> channel, std::atomic<int>& open)
      : channel_(std::move(channel)), open_(open) {}

  void on_line(std::string_view line) override {
    const auto request = protocol::parse_agent_request(line, {});
    if (!request || request->is_notification) return;
    std::string answer;
    if (request->method == "tools/list") {
      answer = protocol::encode_result(request->id, protocol::tools_list_result());
    } else if (request->method == "ping") {
      answer = protocol::encode_result(
          request->id, protocol::encode_ping_result(to_hex(crypto::sha256(protocol::tools_list_result()))));
    } else {
      // What a small host tells of itself.
      answer = protocol::encode_result(
          request->id,
          R"({"content":[{"type":"text","text":"{}"}],"structuredContent":{"os_version":"Debian GNU/Linux 12",)"
          R"("running_services":["cron","dbus","nginx","ssh","systemd-journald","systemd-logind","systemd-udevd"],)"
          R"("open_ports":["22","80","443"],"agent_version":"0.1.0"},"_meta":{"myrmex-hive/outcome":"success"}})");
    }
    if (const auto sent = channel_->send(answer); !sent) channel_->close("cannot answer");
  }

  void on_closed(const Error& reason) override {
    // One line is enough when the gateway goes away and takes them all along.
    if (!told_.exchange(true)) std::fprintf(stderr, "idle_agents: a tunnel closed: %s\n", reason.message.c_str());
    --open_;
  }

 private:
  std::shared_ptr<net::ssh::LineChannel> channel_;
  std::atomic<int>& open_;
  static inline std::atomic<bool> told_ = false;
};

int make_keys(const std::string& folder, int count) {
  for (int number = 1; number <= count; ++number) {
    const auto key = crypto::PrivateKey::generate(name_of(number));
    if (!key) {
      std::fprintf(stderr, "idle_agents: %s\n", key.error().message.c_str());
      return 1;
    }
    const std::string path = folder + "/" + name_of(number);
    if (const auto written = write_file_atomically(path, key->to_openssh(), 0600); !written) {
      std::fprintf(stderr, "idle_agents: %s\n", written.error().message.c_str());
      return 1;
    }
    std::printf("%s\n", key->public_key().to_line().c_str());
  }
  return 0;
}

int run(const std::string& folder, int count, const std::string& host, std::uint16_t port,
        const std::string& host_key_file) {
  std::string line;
  std::getline(std::ifstream(host_key_file), line);
  const auto host_key = crypto::PublicKey::from_line(line);
  if (!host_key) {
    std::fprintf(stderr, "idle_agents: %s: %s\n", host_key_file.c_str(), host_key.error().message.c_str());
    return 1;
  }

  net::Runtime runtime(1);
  std::atomic<int> open = 0;
  std::atomic<bool> failed = false;
  std::vector<std::unique_ptr<net::ssh::ConnectAttempt>> attempts;
  std::vector<std::shared_ptr<IdleAgent>> agents;

  // On the worker. Few at a time, as the gateway admits only so many connections of one source before they have proved
  // who they are.
  constexpr int at_a_time = 8;
  int next = 1;
  std::move_only_function<void()> connect_next;
  connect_next = [&] {
    if (next > count || failed) return;
    net::ssh::ClientOptions options;
    options.host = host;
    options.port = port;
    options.user = name_of(next);
    options.private_key_path = folder + "/" + options.user;
    options.verify_host_key = [&host_key, &host_key_file](const crypto::PublicKey& key) -> Result<void> {
      if (key == *host_key) return {};
      return fail(ErrorCode::permission_denied, "the gateway has another host key than {}", host_key_file);
    };
    ++next;
    attempts.push_back(net::ssh::connect(runtime, runtime.worker(0), std::move(options), [&](auto channel) {
      if (!channel) {
        std::fprintf(stderr, "idle_agents: %s\n", channel.error().message.c_str());
        failed = true;
        return;
      }
      agents.push_back(std::make_shared<IdleAgent>(*channel, open));
      (*channel)->set_handler(agents.back());
      if (++open == count) {
        std::printf("ready %d\n", count);
        std::fflush(stdout);
      }
      connect_next();
    }));
  };
  runtime.start();
  for (int i = 0; i < at_a_time; ++i)
    runtime.worker(0).post([&] { connect_next(); });

  // Until the reader of our output has seen enough and closes our input.
  std::array<char, 64> ignored{};
  pollfd input{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0};
  while (!failed) {
    if (poll(&input, 1, 200) > 0 && read(STDIN_FILENO, ignored.data(), ignored.size()) <= 0) break;
  }
  runtime.stop();
  return failed ? 1 : 0;
}

bool parse_number(std::string_view text, int& value) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc{} && end == text.data() + text.size() && value > 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  int count = 0;
  int port = 0;
  if (arguments.size() == 3 && arguments[0] == "keys" && parse_number(arguments[2], count)) {
    return make_keys(arguments[1], count);
  }
  if (arguments.size() == 6 && arguments[0] == "run" && parse_number(arguments[2], count) &&
      parse_number(arguments[4], port) && port < 65536) {
    return run(arguments[1], count, arguments[3], static_cast<std::uint16_t>(port), arguments[5]);
  }
  std::fprintf(stderr, "usage: idle_agents keys FOLDER COUNT | run FOLDER COUNT HOST PORT HOST_KEY_FILE\n");
  return 2;
}
