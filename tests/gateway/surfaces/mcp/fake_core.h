#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "crypto/random.h"
#include "gateway/surfaces/mcp/core.h"

namespace hive::mcp_surface::test {

/// A request as a transport gave it to the core.
struct Received {
  struct Withdrawal final : Running {
    std::atomic<bool> is_cancelled = false;
    void cancel(std::string_view) override { is_cancelled = true; }
  };

  Client client;
  std::string text;
  std::string id;
  std::string method;
  std::shared_ptr<Reply> reply;
  std::shared_ptr<Withdrawal> running = std::make_shared<Withdrawal>();

  void finish(std::string_view raw_result = "{}", unsigned status = 200) {
    reply->finish(mcp::encode_result(id, raw_result), status);
    reply = nullptr;
  }
  void progress(int step) {
    reply->send(mcp::encode_notification("notifications/progress",
                                         R"({"progressToken":1,"progress":)" + std::to_string(step) + "}"));
  }
};
using ReceivedPointer = std::shared_ptr<Received>;

/// Keeps what arrives; a test decides what is answered, and when. Thread-safe.
class Inbox {
 public:
  std::shared_ptr<Running> add(Client client, std::string text, std::shared_ptr<Reply> reply) {
    auto received = std::make_shared<Received>();
    received->client = std::move(client);
    received->text = std::move(text);
    received->reply = std::move(reply);
    if (auto message = mcp::parse_message(received->text)) {
      received->id = message->id;
      received->method = message->method;
    }
    {
      std::lock_guard lock(mutex_);
      requests_.push_back(received);
    }
    if (answer) answer(*received);
    return received->running;
  }
  void accept(std::string text) {
    std::lock_guard lock(mutex_);
    accepted_.push_back(std::move(text));
  }

  std::vector<ReceivedPointer> requests() const {
    std::lock_guard lock(mutex_);
    return requests_;
  }
  std::vector<std::string> accepted() const {
    std::lock_guard lock(mutex_);
    return accepted_;
  }

  /// Called for each request as it arrives, when set.
  std::function<void(Received&)> answer;

 private:
  mutable std::mutex mutex_;
  std::vector<ReceivedPointer> requests_;  // guarded by mutex_
  std::vector<std::string> accepted_;      // guarded by mutex_
};

class FakeSession final : public Session {
 public:
  FakeSession(Inbox& inbox, std::string owner) : inbox_(inbox), owner_(std::move(owner)) {}

  const std::string& id() const override { return id_; }
  const std::string& owner() const override { return owner_; }
  mcp::Revision revision() const override { return revision_; }
  bool is_initialized() const override { return is_initialized_; }

  std::shared_ptr<Running> request(net::Worker&, Client client, std::string text,
                                   std::shared_ptr<Reply> reply) override {
    auto message = mcp::parse_message(text);
    if (!message || message->method != "initialize") return inbox_.add(std::move(client), text, std::move(reply));
    if (text.find("refuse-me") != std::string::npos) {
      reply->finish(mcp::encode_error(message->id, -32602, "no"), 200);
      return nullptr;
    }
    for (mcp::Revision revision : mcp::all_revisions()) {
      if (text.find(mcp::to_string(revision)) != std::string::npos) revision_ = revision;
    }
    is_initialized_ = true;
    reply->finish(mcp::encode_result(message->id,
                                     R"({"protocolVersion":")" + std::string(mcp::to_string(revision_.load())) + "\"}"),
                  200);
    return nullptr;
  }
  void accept(const Client&, std::string text) override { inbox_.accept(std::move(text)); }
  void set_unsolicited(std::function<void(std::string)> sink) override {
    std::lock_guard lock(mutex_);
    sink_ = std::move(sink);
  }
  void close() override { is_closed = true; }

  /// False while nobody listens.
  bool say(std::string message) {
    std::function<void(std::string)> sink;
    {
      std::lock_guard lock(mutex_);
      sink = sink_;
    }
    if (sink) sink(std::move(message));
    return sink != nullptr;
  }

  std::atomic<bool> is_closed = false;

 private:
  Inbox& inbox_;
  const std::string id_ = crypto::random_hex(16);
  const std::string owner_;
  std::atomic<mcp::Revision> revision_ = mcp::newest_legacy;
  std::atomic<bool> is_initialized_ = false;
  std::mutex mutex_;
  std::function<void(std::string)> sink_;  // guarded by mutex_
};

class FakeCore final : public Core {
 public:
  void apply(std::shared_ptr<const config::GatewayConfig>) override {}
  void fleet_changed() override {}
  std::shared_ptr<Running> request(net::Worker&, Client client, std::string text,
                                   std::shared_ptr<Reply> reply) override {
    return modern.add(std::move(client), std::move(text), std::move(reply));
  }
  std::shared_ptr<Session> open_session(const Client& client) override {
    auto session = std::make_shared<FakeSession>(legacy, client.principal.identity());
    std::lock_guard lock(mutex_);
    auto is_open = [](const auto& each) { return !each->is_closed; };
    if (std::cmp_greater_equal(std::ranges::count_if(sessions_, is_open), max_sessions)) return nullptr;
    sessions_.push_back(session);
    return session;
  }
  std::optional<std::string> mirroring_schema(const policy::Principal&, std::string_view tool) const override {
    if (tool != "mirrors") return std::nullopt;
    return R"({"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}}})";
  }
  void close() override {}

  std::vector<std::shared_ptr<FakeSession>> sessions() const {
    std::lock_guard lock(mutex_);
    return sessions_;
  }

  std::size_t max_sessions = 1000;
  Inbox modern;
  Inbox legacy;

 private:
  mutable std::mutex mutex_;
  std::vector<std::shared_ptr<FakeSession>> sessions_;  // guarded by mutex_
};

}  // namespace hive::mcp_surface::test
