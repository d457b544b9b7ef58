#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <gtest/gtest.h>

#include "crypto/scratch_folder.h"
#include "gateway/audit/fake_log.h"
#include "gateway/calls/approvals.h"
#include "gateway/calls/funnel.h"
#include "net/ssh/fake_line_channel.h"
#include "protocol/agent_protocol.h"

namespace hive::calls::test {

/// A gateway without its surfaces: funnel, fleet, database and approvals are the real ones; time, the log and the
/// agents' ends of the tunnels are the test's.
class HiveFixture : public ::testing::Test {
 protected:
  HiveFixture() {
    config_.source_path = "gateway.json";
    make_hive(config_);
  }

  ~HiveFixture() override {
    fleet_->close("end of test");
    settle();
    stop();
  }

  /// Starts the gateway on the same state, as after a restart.
  void make_hive(const config::GatewayConfig& config) {
    config_ = config;
    auto database = store::Database::open(folder_.path(database_name_));
    ASSERT_TRUE(database) << database.error().message;
    database_ = *std::move(database);
    policy_ = policy::make_policy(config, clock_);
    funnel_ = Funnel::create(*fleet_, policy_, &log_, clock_, {});
    Approvals::Dependencies dependencies{
        .database = *database_, .funnel = *funnel_, .runtime = runtime_, .log = &log_, .clock = clock_};
    dependencies.refresh = [this](const policy::Principal& principal) { return refresh_(principal); };
    dependencies.time_to_live = [this] { return config_.approval_ttl; };
    auto approvals = Approvals::open(std::move(dependencies), options_);
    ASSERT_TRUE(approvals) << approvals.error().message;
    approvals_ = *std::move(approvals);
    funnel_->set_approvals(approvals_.get());
  }

  void reload(const config::GatewayConfig& config) {
    config_ = config;
    policy_ = policy::make_policy(config, clock_, policy_.get());
    funnel_->set_policy(policy_);
  }

  void stop() {
    if (database_ == nullptr) return;
    approvals_->close();
    settle();
    approvals_.reset();
    database_.reset();
    funnel_.reset();
  }

  /// Runs what is ready, here and on the store's thread; nothing waits for time.
  void settle() {
    for (int round = 0; round < 4; ++round) {
      database_->run([](store::Connection&) {});
      poll();
    }
  }

  void poll() {
    worker().context().restart();
    worker().context().poll();
  }

  net::Worker& worker() { return runtime_.worker(0); }

  std::shared_ptr<net::ssh::FakeLineChannel> connect(const std::string& agent) {
    auto channel = std::make_shared<net::ssh::FakeLineChannel>(worker(), agent);
    fleet_->add(channel);
    poll();
    return channel;
  }

  static policy::Principal person(std::string identity, policy::Role role = policy::Role::operator_,
                                  std::optional<policy::Scope> scope = std::nullopt) {
    policy::Grant grant;
    grant.identity = identity;
    grant.scope = std::move(scope);
    return {"token:of-" + identity, role, std::make_shared<const policy::Grant>(std::move(grant))};
  }

  static Call call_of(policy::Principal principal, std::string agent = "edge-1", std::string tool = "run_command",
                      std::string arguments = R"({"name":"reboot"})") {
    Call call;
    call.principal = std::move(principal);
    call.request_id = "request-1";
    call.agent = std::move(agent);
    call.tool = std::move(tool);
    call.arguments = std::move(arguments);
    return call;
  }

  /// Runs a call until nothing more happens without an agent's answer.
  std::optional<CallResult> run(Call call) {
    auto result = std::make_shared<std::optional<CallResult>>();
    funnel_->run(worker(), std::move(call), [result](CallResult ended) { *result = std::move(ended); });
    settle();
    return *result;
  }

  Result<Approvals::Snapshot> decide(policy::Principal by, std::string id, ApprovalAction action,
                                     std::string digest = {}) {
    std::optional<Result<Approvals::Snapshot>> decided;
    approvals_->decide({.by = std::move(by),
                        .id = std::move(id),
                        .action = action,
                        .digest = std::move(digest),
                        .comment = "",
                        .request_id = "request-2"},
                       [&](Result<Approvals::Snapshot> answer) { decided = std::move(answer); });
    settle();
    EXPECT_TRUE(decided.has_value());
    return decided.value_or(fail(ErrorCode::internal, "no answer"));
  }

  Result<std::optional<CallResult>> result_of(const policy::Principal& viewer, std::string id) {
    std::optional<Result<std::optional<CallResult>>> answer;
    approvals_->result(worker(), viewer, std::move(id), std::chrono::milliseconds(0),
                       [&](Result<std::optional<CallResult>> result) { answer = std::move(result); });
    settle();
    EXPECT_TRUE(answer.has_value());
    return answer.value_or(fail(ErrorCode::internal, "no answer"));
  }

  /// The tool calls that a channel was sent.
  static std::size_t calls_sent(const net::ssh::FakeLineChannel& channel) {
    std::size_t count = 0;
    for (const std::string& line : channel.sent()) {
      if (line.find(R"("tools/call")") != std::string::npos && line.find("get_system_info") == std::string::npos)
        ++count;
    }
    return count;
  }

  void answer(net::ssh::FakeLineChannel& channel, std::string_view raw_result) {
    auto members = json::parse_object(channel.sent().back());
    channel.arrive(protocol::encode_result(*json::find(*members, "id"), raw_result));
    settle();
  }

  std::vector<std::string> actions() const {
    std::vector<std::string> names;
    for (const audit::Record& record : log_.records())
      names.push_back(record.action + (record.reason.empty() ? "" : ":" + record.reason));
    return names;
  }

  hive::test::ScratchFolder folder_;
  ManualClock clock_;
  net::Runtime runtime_{1};
  audit::FakeLog log_;
  std::string database_name_ = "hive.db";
  config::GatewayConfig config_;
  Approvals::Options options_;
  std::function<std::optional<policy::Principal>(const policy::Principal&)> refresh_ =
      [](const policy::Principal& principal) { return principal; };
  std::unique_ptr<fleet::Fleet> fleet_ = fleet::Fleet::create(clock_, {}, {});
  std::shared_ptr<const policy::Policy> policy_;
  std::unique_ptr<Funnel> funnel_;
  std::unique_ptr<store::Database> database_;
  std::shared_ptr<Approvals> approvals_;
};

}  // namespace hive::calls::test
