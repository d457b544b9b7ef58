#pragma once

#include <atomic>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/surfaces/mcp/core.h"
#include "protocol/mcp/message.h"
#include "protocol/mcp/translation.h"

namespace hive::mcp_surface {

class LegacySession;

/// One request of a client on its way to its one answer. Everything but cancel(), progress(), log_message() and the
/// views of the request is for its worker alone, so that what belongs to it leaves in order and nothing follows the
/// answer.
class Exchange final : public Running, public std::enable_shared_from_this<Exchange> {
 public:
  /// What a client has declared, for one request or for its session.
  struct Context {
    mcp::Revision revision = mcp::newest;
    std::string capabilities = "{}";         ///< raw object
    std::string caller_key;                  ///< of a session, towards upstreams that keep state; otherwise empty
    std::optional<std::string> log_level;    ///< modern alone; a session's can change
    std::shared_ptr<LegacySession> session;  ///< legacy alone
    std::string_view server_info;            ///< raw object; must live as long as the program
  };

  /// Takes a request apart; a fault answers it.
  static std::expected<std::shared_ptr<Exchange>, mcp::Fault> parse(net::Worker& worker, Client client,
                                                                    std::string text, std::shared_ptr<Reply> reply);
  Exchange(net::Worker& worker, Client client, std::string text, std::shared_ptr<Reply> reply);

  void set_context(Context context) { context_ = std::move(context); }
  /// Runs when the request is over, before its answer leaves: then its id is free again. Before it is dispatched.
  void on_over(std::move_only_function<void()> task) { on_over_ = std::move(task); }

  [[nodiscard]] net::Worker& worker() const { return worker_; }
  [[nodiscard]] const Client& client() const { return client_; }
  [[nodiscard]] const Context& context() const { return context_; }
  [[nodiscard]] bool is_modern() const { return mcp::is_modern(context_.revision); }
  [[nodiscard]] const mcp::Message& message() const { return message_; }
  [[nodiscard]] const mcp::RequestMeta& meta() const { return meta_; }
  /// A member of params; nullopt when it is absent.
  [[nodiscard]] std::optional<std::string_view> parameter(std::string_view key) const;
  /// The same, which must be a string; otherwise the request is answered with -32602 and this is nullopt.
  std::optional<std::string> required_text(std::string_view key);
  [[nodiscard]] bool wants_progress() const { return !meta_.progress_token.empty(); }
  /// From which level on the client wants log messages now.
  [[nodiscard]] std::optional<std::string> log_level() const;

  /// What to do when the client withdraws the request.
  void on_cancel(std::move_only_function<void(std::string_view reason)> task) { on_cancel_ = std::move(task); }
  void cancel(std::string_view reason) override;
  [[nodiscard]] bool is_over() const { return over_; }

  /// The answers; the first one counts.
  void finish(std::string_view raw_result, const mcp::CacheHint& hint = {});
  void finish_adapted(std::string_view raw_result);  ///< already as the client must see it
  void fail(int code, std::string_view message, std::string_view raw_data = {}, unsigned http_status = 200);
  void fail_as_upstream(std::string_view raw_error);  ///< an error object of an upstream, adapted to the client
  void fail_not_found(std::string_view uri);          ///< a resource

  /// A message that belongs to this request. Any thread.
  void send(std::string message);
  /// notifications/progress under the client's own token; what does not increase is left out. Any thread.
  void progress(std::string_view raw_params);
  /// notifications/message, if the client wants its level. Any thread.
  void log_message(std::string_view raw_params);

  /// Sends a client that can come back for the answer away meanwhile. Any thread.
  void interrupt();

  /// One timer for whoever handles the request; gone with the answer.
  void set_timer(std::chrono::milliseconds delay, net::Task task);

 private:
  bool end(bool is_answered);  // false: it was over
  void send_progress(std::string_view raw_params);

  net::Worker& worker_;
  const Client client_;
  const std::string text_;
  const std::shared_ptr<Reply> reply_;
  mcp::Message message_;  // views of text_
  mcp::RequestMeta meta_;
  std::vector<json::Member> parameters_;
  Context context_;
  std::move_only_function<void()> on_over_;
  std::move_only_function<void(std::string_view)> on_cancel_;
  net::Timer timer_;
  std::optional<double> last_progress_;
  std::atomic<bool> over_ = false;
};

using ExchangePointer = std::shared_ptr<Exchange>;

}  // namespace hive::mcp_surface
