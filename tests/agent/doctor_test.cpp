#include "agent/doctor.h"

#include <atomic>
#include <filesystem>

#include <gmock/gmock.h>

#include "base/file.h"
#include "net/ssh/server.h"
#include "protocol/agent_protocol.h"
#include "protocol/document.h"

namespace hive::agent {
namespace {

using namespace std::chrono_literals;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// What a gateway does with a question: the line to answer with, or nullopt to say nothing.
using Oracle = std::function<std::optional<std::string>(std::string_view line)>;

struct Questioned final : net::ssh::LineChannel::Handler {
  Questioned(std::shared_ptr<net::ssh::LineChannel> used_channel, Oracle used_oracle)
      : channel(std::move(used_channel)), oracle(std::move(used_oracle)) {}
  void on_line(std::string_view line) override {
    if (auto answer = oracle(line)) (void)channel->send(*answer);
  }
  void on_closed(const Error& /*reason*/) override {}
  std::shared_ptr<net::ssh::LineChannel> channel;
  Oracle oracle;
};

class DoctorTest : public testing::Test {
 protected:
  DoctorTest() : runtime_(1) {
    std::string name = (std::filesystem::temp_directory_path() / "hive-doctor-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
    folder_ = name;
    host_ = crypto::PrivateKey::generate("").value();
    key_ = crypto::PrivateKey::generate("agent-1").value();
    put("host_key", host_->to_openssh());
    put("id_ed25519", key_->to_openssh());
    options_.config_path = folder_ + "/agent.json";
    options_.unit_folder = folder_ + "/units";
    options_.clock = &clock_;
  }
  ~DoctorTest() override {
    server_.reset();
    runtime_.stop();
    std::filesystem::remove_all(folder_);
  }

  void put(const std::string& name, std::string_view text) {
    ASSERT_TRUE(write_file_atomically(folder_ + "/" + name, text, 0600));
  }

  /// `oracle` empty: the gateway does not know the doctor's channel.
  void start_gateway(const Oracle& oracle) {
    net::ssh::ServerOptions options;
    options.listen_address = "127.0.0.1:0";
    options.host_key_path = folder_ + "/host_key";
    if (oracle) options.probe_subsystem = std::string(protocol::ssh_probe_subsystem);
    options.authenticate = [known = key_->public_key()](const std::string&, const crypto::PublicKey& key,
                                                        const std::string&) -> Result<void> {
      if (key == known) return {};
      return fail(ErrorCode::permission_denied, "unknown");
    };
    options.accept = [this, oracle](std::shared_ptr<net::ssh::LineChannel> channel) {
      if (channel->peer().kind != net::ssh::ChannelKind::probe) ++tunnels_;
      channel->set_handler(std::make_shared<Questioned>(channel, oracle));
    };
    auto listening = net::ssh::Server::listen(runtime_, std::move(options));
    ASSERT_TRUE(listening) << listening.error().message;
    server_ = std::move(*listening);
    runtime_.start();
    configure("sh");
  }

  void configure(std::string_view program) {
    put("agent.json",
        fmt::format(R"({{"agent_id":"agent-1","gateway_addr":"127.0.0.1:{}","private_key_path":"id_ed25519",)"
                    R"("gateway_host_key":"{}","allowed_commands":[{{"name":"{}"}}]}})",
                    server_->port(), host_->public_key().to_line(), program));
  }

  /// An answer that tells this time and that the agent is online.
  [[nodiscard]] Oracle answering(std::chrono::milliseconds ahead, bool online = true) const {
    return [this, ahead, online](std::string_view line) -> std::optional<std::string> {
      const auto request = protocol::parse_agent_request(line, {});
      const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(clock_.wall_now().time_since_epoch());
      return protocol::encode_result(
          request->id, fmt::format(R"({{"unix_ms":{},"version":"9.9","online":{},"address":"192.0.2.7"}})",
                                   (now + ahead).count(), online));
    };
  }

  /// The check of this name in a group whose title begins so; fails the test when there is none.
  static Check check(const DoctorReport& report, std::string_view title, std::string_view name) {
    for (const CheckGroup& group : report.groups) {
      if (!group.title.starts_with(title)) continue;
      for (const Check& found : group.checks) {
        if (found.name == name) return found;
      }
    }
    ADD_FAILURE() << title << ": no check " << name << " in\n" << as_text(report, false);
    return {};
  }

  ManualClock clock_;
  std::string folder_;
  std::optional<crypto::PrivateKey> host_, key_;
  net::Runtime runtime_;
  std::unique_ptr<net::ssh::Server> server_;
  DoctorOptions options_;
  std::atomic<int> tunnels_ = 0;
};

TEST_F(DoctorTest, AHealthyWayIsFoundHealthy) {
  start_gateway(answering(0ms));
  const DoctorReport report = examine(options_);
  EXPECT_EQ(report.exit, DoctorExit::healthy) << as_text(report, false);
  EXPECT_THAT(check(report, "Gateway", "question").detail, HasSubstr("by version 9.9"));
  EXPECT_THAT(check(report, "Gateway", "clock").detail, HasSubstr("agree"));
  EXPECT_THAT(check(report, "The agent", "tunnel").detail, HasSubstr("from 192.0.2.7"));
  EXPECT_EQ(tunnels_, 0) << "a running agent would lose its tunnel";
}

TEST_F(DoctorTest, ClocksThatDifferAreTold) {
  start_gateway(answering(-10min));
  const Check clock = check(examine(options_), "Gateway", "clock");
  EXPECT_EQ(clock.status, CheckStatus::warning);
  EXPECT_EQ(clock.detail, "the gateway's clock is 600.0 s behind this one");
  EXPECT_THAT(clock.remedy, HasSubstr("NTP"));
}

TEST_F(DoctorTest, AGatewayWithoutTheDoctorsChannelIsNoFault) {
  start_gateway({});
  const DoctorReport report = examine(options_);
  EXPECT_EQ(report.exit, DoctorExit::healthy) << as_text(report, false);
  EXPECT_EQ(check(report, "Gateway", "login").status, CheckStatus::ok);
  EXPECT_EQ(check(report, "Gateway", "question").status, CheckStatus::skipped);
  EXPECT_EQ(check(report, "The agent", "tunnel").status, CheckStatus::skipped);
  EXPECT_EQ(tunnels_, 0);
}

TEST_F(DoctorTest, AGatewayThatDoesNotAnswerIsGivenUp) {
  start_gateway([](std::string_view) { return std::nullopt; });
  options_.step_timeout = 2s;
  const DoctorReport report = examine(options_);
  EXPECT_EQ(report.exit, DoctorExit::problem);
  EXPECT_THAT(check(report, "Gateway", "question").detail, HasSubstr("does not answer within 2000 ms"));
}

TEST_F(DoctorTest, AnswersThatAreNoneAreRefused) {
  std::string answer;
  start_gateway([&](std::string_view) { return answer; });
  for (std::string_view text :
       {"garbage", "{}", R"({"jsonrpc":"2.0","id":"2","result":{"unix_ms":1,"online":true}})",
        R"({"jsonrpc":"2.0","id":"1","result":{"unix_ms":-1,"online":true}})",
        R"({"jsonrpc":"2.0","id":"1","result":{"unix_ms":99999999999999999999,"online":true}})",
        R"({"jsonrpc":"2.0","id":"1","result":{"unix_ms":1}})", R"({"jsonrpc":"2.0","id":"1","error":{"code":1}})"}) {
    answer = text;
    const DoctorReport report = examine(options_);
    EXPECT_EQ(check(report, "Gateway", "question").status, CheckStatus::failed) << text;
    EXPECT_EQ(report.exit, DoctorExit::problem) << text;
  }
}

TEST_F(DoctorTest, RemoteTextCannotSteerTheTerminal) {
  start_gateway([](std::string_view) -> std::optional<std::string> {
    return R"({"jsonrpc":"2.0","id":"1","result":{"unix_ms":1,"online":true,"version":"\u001b[2J\n"}})";
  });
  EXPECT_THAT(as_text(examine(options_), false), AllOf(HasSubstr("\\x1b[2J"), Not(HasSubstr("\x1b"))));
}

TEST_F(DoctorTest, EntriesThatTheSandboxStopsAreNamedWhereTheUnitIs) {
  start_gateway(answering(0ms));
  EXPECT_EQ(check(examine(options_), "This machine", "sandbox").status, CheckStatus::skipped);

  std::filesystem::create_directories(options_.unit_folder);
  put("units/myrmex-agent.service", "[Service]\n");
  EXPECT_EQ(check(examine(options_), "This machine", "sandbox").status, CheckStatus::ok);

  const std::string program = folder_ + "/privileged";
  put("privileged", "#!/bin/sh\n");
  std::filesystem::permissions(program, static_cast<std::filesystem::perms>(04755));
  configure(program);
  const Check sandbox = check(examine(options_), "This machine", "sandbox");
  EXPECT_EQ(sandbox.status, CheckStatus::warning);
  EXPECT_THAT(sandbox.detail, HasSubstr("NoNewPrivileges"));

  std::filesystem::create_directories(options_.unit_folder + "/myrmex-agent.service.d");
  EXPECT_EQ(check(examine(options_), "This machine", "sandbox").status, CheckStatus::ok);
}

TEST_F(DoctorTest, AKeyForAnotherAgentIsDoubted) {
  key_ = crypto::PrivateKey::generate("agent-2").value();
  put("id_ed25519", key_->to_openssh());
  start_gateway(answering(0ms));
  const Check key = check(examine(options_), "This machine", "key");
  EXPECT_EQ(key.status, CheckStatus::warning);
  EXPECT_THAT(key.detail, AllOf(HasSubstr("agent-2"), HasSubstr("agent_id is \"agent-1\"")));
}

TEST_F(DoctorTest, BothFormsOfTheReportSayTheSame) {
  start_gateway(answering(0ms, false));
  const DoctorReport report = examine(options_);
  EXPECT_EQ(report.exit, DoctorExit::problem);
  const auto document = json::parse(as_json(report));
  ASSERT_TRUE(document);
  EXPECT_EQ(document->at("exit_code").as_int64(), 1);
  EXPECT_FALSE(document->at("ok").as_bool());
  EXPECT_EQ(document->at("groups").as_array().size(), report.groups.size());
  const std::string text = as_text(report, true);
  EXPECT_THAT(text, HasSubstr("\x1b[33mwarning\x1b[0m   tunnel"));
  EXPECT_THAT(text, HasSubstr("\n                      -> start it: systemctl start myrmex-agent"));
}

}  // namespace
}  // namespace hive::agent
