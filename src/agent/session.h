#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "agent/tool.h"
#include "net/ssh/line_channel.h"
#include "protocol/agent_protocol.h"

namespace hive::agent {

class Session;

/// What the sessions of an agent share. On the agent's worker.
class SessionHost {
 public:
  virtual ~SessionHost() = default;
  virtual ToolServices& services() = 0;
  /// Takes a place for one call; an empty text when there is one, else why not: "busy" or "stopping".
  virtual std::string_view begin_call() = 0;
  virtual void end_call() = 0;
  virtual void closed(Session& session) = 0;
};

/// One channel to a gateway and the calls that came over it.
class Session final : public net::ssh::LineChannel::Handler, public std::enable_shared_from_this<Session> {
 public:
  /// `on_answered` is called when a request was understood and its answer is on its way; may be empty.
  Session(std::shared_ptr<SessionHost> host, std::shared_ptr<net::ssh::LineChannel> channel,
          std::move_only_function<void()> on_answered);

  void on_line(std::string_view line) override;
  void on_writable() override;
  void on_closed(const Error& reason) override;

  /// Ends what runs; results follow.
  void cancel_all();
  void close(std::string_view reason);
  /// For the end of the agent, after the runtime has stopped: gives up the channel, which may still hold this session.
  void let_go();
  /// Whether every answer has been handed to the channel.
  [[nodiscard]] bool is_idle() const { return calls_.empty() && waiting_.empty(); }

 private:
  struct Running {
    std::string id;  // raw JSON
    std::string progress_token;
    std::uint64_t last_progress = 0;
    CancelHook cancel;
    bool cancel_wanted = false;
  };

  void on_request(const protocol::AgentRequest& request);
  void call_tool(const protocol::AgentRequest& request);
  void cancel_call(std::string_view params);
  void cancel(Running& call);
  void answered();
  void send_progress(std::uint64_t number, std::string_view text, std::uint64_t total_bytes);
  void finish(std::uint64_t number, ToolReply reply);
  // Answers must not be lost: what the channel has no room for waits, and no more requests are taken meanwhile.
  void send_answer(std::string line);
  void send_result(std::string_view raw_id, std::string_view raw_result);
  void send_error(std::string_view raw_id, int code, std::string_view message, std::string_view reason);

  std::shared_ptr<SessionHost> host_;
  std::shared_ptr<net::ssh::LineChannel> channel_;
  std::move_only_function<void()> on_answered_;
  std::map<std::uint64_t, Running> calls_;  // by our own number: ids may be absent
  std::uint64_t next_number_ = 1;
  std::deque<std::string> waiting_;
};

}  // namespace hive::agent
