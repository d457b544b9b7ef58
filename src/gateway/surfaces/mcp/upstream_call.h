#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/surfaces/mcp/exchange.h"
#include "gateway/surfaces/mcp/request_state.h"
#include "protocol/mcp/translation.h"

namespace hive::mcp_surface {

class Server;

/// What is asked of an upstream.
struct UpstreamRequest {
  std::string upstream;
  std::string method;  ///< "tools/call", "prompts/get", "resources/read", "completion/complete"
  std::string name;    ///< the tool, prompt or URI as the upstream knows it
  std::string arguments = "{}";
  std::string params;  ///< raw object with the upstream's own names, without _meta
};

/// One call to an upstream and the caller's side of it: where its progress, log messages and questions go.
///
/// A legacy client is asked at once, on the stream of its request. A modern client can't be asked: questions are
/// gathered for a moment, the request ends with them, and the call is held until a retry brings the answers. And where
/// a modern upstream ends with questions of its own, a legacy client is asked them, and the call is made again with the
/// answers, through all gates.
class UpstreamCall final : public upstreams::Caller, public std::enable_shared_from_this<UpstreamCall> {
 public:
  UpstreamCall(std::shared_ptr<Server> server, ExchangePointer exchange, UpstreamRequest request);

  /// Before the start: answers that the client brings of its own accord. They answer the questions of their names.
  void bring(std::string_view raw_responses);
  void start();
  /// Goes on with a held call for a retry of its request. `raw_responses` is the object of answers, or empty; an answer
  /// of the wrong shape refuses the retry, which may then come again.
  void resume(const ExchangePointer& exchange, std::string_view state, std::string_view raw_responses);
  /// Ends the call; nobody waits for it.
  void withdraw(std::string_view reason);

  [[nodiscard]] const std::string& key() const override { return key_; }
  [[nodiscard]] const std::string& capabilities() const override { return capabilities_; }
  [[nodiscard]] std::optional<std::string> log_level() const override;
  [[nodiscard]] bool wants_progress() const override;
  [[nodiscard]] bool keeps_session() const override { return !is_modern_; }
  void interrupted() override;
  void notify(std::string_view method, std::string_view raw_params) override;
  void ask(std::string method, std::string raw_params,
           std::move_only_function<void(Result<std::string>)> done) override;

 private:
  static constexpr std::size_t max_questions = 16;  // that wait at a time
  static constexpr unsigned max_rounds = 16;
  static constexpr std::size_t max_kept_bytes = std::size_t{1} << 20;  // of a result that nobody waits for yet

  struct Question {
    std::string method;
    std::string params;
    std::move_only_function<void(Result<std::string>)> done;
  };
  using Answers = std::map<std::string, std::string>;

  void run(std::string params);
  void on_done(calls::CallResult result);
  void deliver(const ExchangePointer& exchange, calls::CallResult result);
  /// What a modern client lacks for this result, or "".
  [[nodiscard]] std::string missing_capability(const calls::CallResult& result) const;
  void attach(const ExchangePointer& exchange);
  [[nodiscard]] ExchangePointer exchange() const;
  void end_round(const ExchangePointer& exchange);
  void ask_legacy_client(const ExchangePointer& exchange, std::string_view raw_result);
  void on_answer(const ExchangePointer& exchange, const std::string& key, Result<std::string> answer);
  void run_again(const ExchangePointer& exchange);
  void give_up(const ExchangePointer& exchange, std::string_view why);
  /// A name that no question of this call has had. With mutex_ held.
  std::string key_for(std::string_view method, std::string_view raw_params);
  [[nodiscard]] std::expected<Answers, std::string> answers_in(std::string_view raw_responses) const;

  const std::shared_ptr<Server> server_;
  const UpstreamRequest request_;
  const std::string key_;
  const std::string capabilities_;
  const Client client_;
  const bool is_modern_;
  net::Worker& worker_;  // where the funnel answers

  mutable std::mutex mutex_;
  ExchangePointer exchange_;                     // null while the call is held; guarded by mutex_
  std::shared_ptr<calls::RunningCall> running_;  // guarded by mutex_
  std::map<std::string, Question> questions_;    // of a legacy upstream to a modern client; guarded by mutex_
  std::set<std::string> keys_;                   // that questions had or have; guarded by mutex_
  Answers brought_;                              // to questions that are not asked yet; guarded by mutex_
  std::optional<calls::CallResult> result_;      // that came while nobody waited; guarded by mutex_
  std::string refused_capability_;  // that the upstream needed and the client does not declare; guarded by mutex_
  bool round_ends_ = false;         // guarded by mutex_

  // The questions of a modern upstream to a legacy client; on the exchange's worker.
  mcp::InputRequired asked_;
  Answers answered_;
  unsigned round_ = 0;
};

/// {"KEY":RAW,...}
std::string encode_answers(const std::map<std::string, std::string>& answers);

/// Sends a request to an upstream through the funnel; retries of held calls find theirs.
void call_upstream(const std::shared_ptr<Server>& server, const ExchangePointer& exchange, UpstreamRequest request);

}  // namespace hive::mcp_surface
