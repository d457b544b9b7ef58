#pragma once

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>

#include "gateway/calls/fan_out.h"
#include "gateway/calls/hive_fixture.h"
#include "gateway/calls/results.h"

namespace hive::calls::test {

inline constexpr std::string_view fine = R"({"content":[{"type":"text","text":"fine"}]})";
inline constexpr std::string_view failed = R"({"content":[{"type":"text","text":"broken"}],"isError":true})";

/// Remembers what it is handed.
class Collected final : public FanOutSink {
 public:
  struct Ended {
    std::string agent;
    CallResult call;
  };

  void result(FanOutResult result) override {
    EXPECT_FALSE(end_.has_value()) << "a result after the end";
    EXPECT_TRUE(by_agent_.emplace(result.agent, result.place).second) << "two results of " << result.agent;
    results_.push_back({std::string(result.agent), std::move(result.call)});
  }
  void end(const FanOutEnd& end) override {
    EXPECT_FALSE(end_.has_value()) << "it must end once";
    end_ = end;
  }
  [[nodiscard]] bool has_room() const override { return room_; }

  [[nodiscard]] const CallResult& of(std::string_view agent) const {
    auto found = std::ranges::find(results_, agent, &Ended::agent);
    static const CallResult none;
    EXPECT_NE(found, results_.end()) << "no result of " << agent;
    return found == results_.end() ? none : found->call;
  }
  [[nodiscard]] std::vector<std::string> order() const {
    std::vector<std::string> agents;
    for (const Ended& each : results_)
      agents.push_back(each.agent);
    return agents;
  }

  std::vector<Ended> results_;
  std::map<std::string, std::size_t> by_agent_;
  std::optional<FanOutEnd> end_;
  bool room_ = true;
};

class FanOutTest : public test::HiveFixture {
 protected:
  ~FanOutTest() override {
    // Calls that a test left running end while their fan-outs are still there.
    fleet_->close("end of test");
    settle();
  }

  using Channel = std::shared_ptr<net::ssh::FakeLineChannel>;

  /// An agent that answers every call at once.
  Channel connect_answering(const std::string& id, std::string_view result = fine) {
    Channel channel = connect(id);
    channel->on_send = [this, raw = std::string(result), weak = std::weak_ptr(channel)](const std::string& line) {
      if (!is_call(line)) return;
      worker().post([weak, line, raw] {
        if (auto alive = weak.lock()) alive->arrive(protocol::encode_result(id_of(line), raw));
      });
    };
    return channel;
  }

  static bool is_call(const std::string& line) {
    return line.contains(R"("tools/call")") && !line.contains("get_system_info");
  }
  static std::string id_of(const std::string& line) {
    auto members = json::parse_object(line);
    return std::string(*json::find(*members, "id"));
  }
  /// Answers the one call that an agent has.
  void answer_call(net::ssh::FakeLineChannel& channel, std::string_view result = fine) {
    auto call = std::ranges::find_if(channel.sent(), is_call);
    ASSERT_NE(call, channel.sent().end());
    channel.arrive(protocol::encode_result(id_of(*call), result));
    settle();
  }

  static FanOutRequest request_for(std::vector<std::string> agents) {
    FanOutRequest request;
    request.principal = person("alice");
    request.request_id = "r-1";
    request.tool = "get_metrics";
    request.targets.agents = std::move(agents);
    return request;
  }
  static FanOutRequest request_for_all() {
    FanOutRequest request = request_for({});
    request.targets.all = true;
    return request;
  }

  std::shared_ptr<RunningFanOut> start(FanOutRequest request) {
    sink_ = std::make_shared<Collected>();
    auto started = fan_outs().start(worker(), std::move(request), sink_);
    EXPECT_TRUE(started.has_value()) << started.error().body;
    settle();
    return started.value_or(nullptr);
  }
  CallResult refused(FanOutRequest request) {
    sink_ = std::make_shared<Collected>();
    auto started = fan_outs().start(worker(), std::move(request), sink_);
    settle();
    EXPECT_FALSE(started.has_value());
    EXPECT_THAT(sink_->results_, testing::IsEmpty());
    return started.has_value() ? CallResult() : started.error();
  }
  /// Runs what is ready until something is true, over real time.
  template <class Condition>
  bool eventually(Condition condition) {
    auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
    while (!condition()) {
      if (std::chrono::steady_clock::now() > end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      settle();
    }
    return true;
  }

  FanOuts& fan_outs() {
    if (fan_outs_ == nullptr) fan_outs_ = FanOuts::create(*funnel_, *fleet_, &log_, clock_, fan_out_options_);
    return *fan_outs_;
  }

  std::vector<audit::Record> records_of(std::string_view action) const {
    std::vector<audit::Record> found;
    for (const audit::Record& record : log_.records())
      if (record.action == action) found.push_back(record);
    return found;
  }

  FanOuts::Options fan_out_options_;
  std::unique_ptr<FanOuts> fan_outs_;
  std::shared_ptr<Collected> sink_;
};

}  // namespace hive::calls::test
