#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/surfaces/mcp/exchange.h"
#include "gateway/surfaces/mcp/subscriptions.h"

namespace hive::mcp_surface {

class Server;

/// A legacy client between initialize and its end.
class LegacySession final : public Session, public std::enable_shared_from_this<LegacySession> {
 public:
  /// null: there are too many, in all or of this identity.
  static std::shared_ptr<LegacySession> open(std::shared_ptr<Server> server, const Client& client);
  LegacySession(std::shared_ptr<Server> server, const Client& client);
  ~LegacySession() override;
  LegacySession(const LegacySession&) = delete;
  LegacySession& operator=(const LegacySession&) = delete;

  [[nodiscard]] const std::string& id() const override { return id_; }
  [[nodiscard]] const std::string& owner() const override { return owner_; }
  [[nodiscard]] mcp::Revision revision() const override;
  [[nodiscard]] bool is_initialized() const override;
  std::shared_ptr<Running> request(net::Worker& worker, Client client, std::string text,
                                   std::shared_ptr<Reply> reply) override;
  void accept(const Client& client, std::string text) override;
  void set_unsolicited(std::function<void(std::string message)> sink) override;
  void close() override;

  [[nodiscard]] std::string log_level() const;
  void set_log_level(std::string level);
  [[nodiscard]] const std::shared_ptr<Subscriber>& subscriber() const { return subscriber_; }

  /// Sends the client a request of ours on the stream of `exchange`; `done` gets the raw result, or what the client
  /// says instead. Never called when the exchange ends before.
  void ask(const ExchangePointer& exchange, const std::string& method, std::string_view raw_params,
           std::move_only_function<void(Result<std::string>)> done);
  /// The questions of an exchange that is over are void. With `reply`, the client is told so.
  void withdraw_questions(const Exchange& exchange, Reply* reply);

 private:
  static constexpr std::size_t max_in_flight = 256;
  static constexpr std::size_t max_questions = 64;
  static constexpr std::size_t max_waiting = 256;  // messages for a client that does not listen yet

  struct Question {
    const Exchange* exchange = nullptr;
    std::move_only_function<void(Result<std::string>)> done;
  };

  void initialize(const ExchangePointer& exchange);
  [[nodiscard]] std::optional<std::string> enter(const ExchangePointer& exchange);  // why not
  void leave(const std::string& id_key);
  void listen();
  void hear(std::string_view method, std::string_view raw_params);
  void on_cancelled(const mcp::Message& notification);
  void on_response(const mcp::Message& response);

  const std::shared_ptr<Server> server_;
  const Client opener_;
  const std::string id_;
  const std::string owner_;
  std::shared_ptr<Subscriber> subscriber_;  // set by open()

  mutable std::mutex mutex_;
  bool is_initialized_ = false;                               // guarded by mutex_
  bool is_closed_ = false;                                    // guarded by mutex_
  mcp::Revision revision_ = mcp::newest_legacy;               // guarded by mutex_
  std::string capabilities_ = "{}";                           // guarded by mutex_
  std::string log_level_ = "info";                            // guarded by mutex_
  std::map<std::string, std::weak_ptr<Exchange>> in_flight_;  // by id; guarded by mutex_
  std::map<std::string, Question, std::less<>> questions_;    // by our id; guarded by mutex_
  std::function<void(std::string)> sink_;                     // guarded by mutex_
  std::map<std::string, std::string> waiting_;                // the latest of each kind; guarded by mutex_
};

}  // namespace hive::mcp_surface
