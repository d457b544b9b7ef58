#include "gateway/surfaces/mcp/stdio_endpoint.h"

#include <atomic>
#include <future>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/strings.h"
#include "crypto/random.h"
#include "gateway/surfaces/mcp/stdio_output.h"
#include "net/runtime/lines.h"
#include "protocol/agent_protocol.h"
#include "protocol/json.h"

namespace hive::mcp_surface {

namespace {

constexpr std::size_t max_in_flight = 256;
constexpr std::size_t request_id_bytes = 8;
constexpr std::chrono::milliseconds last_writes{300};

/// The answers of one batch, which go out together when all are there (2025-03-26 alone has batches).
class Batch {
 public:
  explicit Batch(std::shared_ptr<StdioOutput> output) : output_(std::move(output)) {}
  ~Batch() {
    if (!answers_.empty()) output_->send("[" + join(answers_, ",") + "]");
  }
  Batch(const Batch&) = delete;
  Batch& operator=(const Batch&) = delete;

  void add(std::string answer) {
    std::lock_guard lock(mutex_);
    answers_.push_back(std::move(answer));
  }

 private:
  std::shared_ptr<StdioOutput> output_;
  std::mutex mutex_;
  std::vector<std::string> answers_;  // guarded by mutex_
};

/// The modern requests that run, and how many requests of either era are not answered yet. Thread-safe.
class InFlight {
 public:
  /// false: the id is in use, or there are too many.
  bool enter(const std::string& key) {
    std::lock_guard lock(mutex_);
    return running_.size() < max_in_flight && running_.emplace(key, nullptr).second;
  }
  void set(const std::string& key, std::shared_ptr<Running> running) {
    std::lock_guard lock(mutex_);
    if (auto found = running_.find(key); found != running_.end()) found->second = std::move(running);
  }
  /// What runs under this id, which is free again.
  std::shared_ptr<Running> leave(const std::string& key) {
    std::lock_guard lock(mutex_);
    auto found = running_.find(key);
    if (found == running_.end()) return nullptr;
    std::shared_ptr<Running> running = std::move(found->second);
    running_.erase(found);
    return running;
  }
  std::vector<std::shared_ptr<Running>> leave_all() {
    std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Running>> all;
    for (auto& [key, running] : running_)
      if (running != nullptr) all.push_back(std::move(running));
    running_.clear();
    return all;
  }

  void count() {
    std::lock_guard lock(mutex_);
    ++unanswered_;
  }
  void uncount() {
    std::function<void()> none_left;
    {
      std::lock_guard lock(mutex_);
      if (--unanswered_ == 0) none_left = std::exchange(when_none_, nullptr);
    }
    if (none_left) none_left();
  }
  /// Calls `task` once, now or later, when every request is answered.
  void when_none(std::function<void()> task) {
    {
      std::lock_guard lock(mutex_);
      if (unanswered_ > 0) {
        when_none_ = std::move(task);
        return;
      }
    }
    task();
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Running>> running_;  // by id; guarded by mutex_, as are the next ones
  std::size_t unanswered_ = 0;
  std::function<void()> when_none_;
};

/// Where the messages of one request go.
class LineReply final : public Reply {
 public:
  struct Place {
    std::shared_ptr<StdioOutput> output;
    std::shared_ptr<InFlight> in_flight;
    std::shared_ptr<Batch> batch;  ///< null: none
    std::string key;               ///< of a modern request; empty: of a legacy one
    bool is_waited_for = true;     ///< a subscription has no end to wait for
  };

  explicit LineReply(Place place) : place_(std::move(place)) {
    if (place_.is_waited_for) place_.in_flight->count();
  }
  // A request that was withdrawn has no answer.
  ~LineReply() override { settle(); }
  LineReply(const LineReply&) = delete;
  LineReply& operator=(const LineReply&) = delete;

  void send(std::string message) override { place_.output->send(std::move(message)); }

  void finish(std::string message, unsigned) override {
    // First, because the client may use the id again as soon as it has the answer.
    if (!place_.key.empty()) place_.in_flight->leave(place_.key);
    if (place_.batch != nullptr) {
      place_.batch->add(std::move(message));
    } else {
      place_.output->send(std::move(message));
    }
    settle();
  }

 private:
  void settle() {
    if (is_settled_.exchange(true)) return;
    place_.batch.reset();
    if (place_.is_waited_for) place_.in_flight->uncount();
  }

  Place place_;
  std::atomic<bool> is_settled_ = false;
};

}  // namespace

/// Lives as long as anything that runs for the client.
class StdioEndpoint::Conversation : public std::enable_shared_from_this<Conversation> {
 public:
  Conversation(Core& core, net::Worker& worker, Options options)
      : core_(core), worker_(worker), options_(std::move(options)) {}

  void start();
  void close();
  [[nodiscard]] net::Worker& worker() { return worker_; }
  [[nodiscard]] StdioOutput& output() { return *output_; }

 private:
  void take_line(std::string_view line, const std::shared_ptr<Batch>& batch);
  void take_batch(std::string_view line);
  void take_request(const mcp::Message& message, std::string_view text, const std::shared_ptr<Batch>& batch);
  void take_modern(const mcp::Message& message, std::string_view text, const std::shared_ptr<Batch>& batch);
  void take_other(const mcp::Message& message, std::string_view text);
  void answer(std::string message, const std::shared_ptr<Batch>& batch);
  Session* session();
  [[nodiscard]] Client client() const {
    return {options_.principal(), calls::Surface::mcp_stdio, crypto::random_hex(request_id_bytes)};
  }
  void wait_for_answers();
  std::function<void()> ending();
  void end();
  void withdraw(std::string_view reason);

  // All of it on worker_.
  Core& core_;
  net::Worker& worker_;
  Options options_;
  std::shared_ptr<StdioOutput> output_;
  std::shared_ptr<InFlight> in_flight_ = std::make_shared<InFlight>();
  std::shared_ptr<Session> session_;
  std::unique_ptr<net::LineReader> reader_;
  net::Timer patience_;
  bool has_ended_ = false;
};

void StdioEndpoint::Conversation::start() {
  output_ = std::make_shared<StdioOutput>(options_.out_fd, options_.max_unread_bytes, ending());
  reader_ = std::make_unique<net::LineReader>(
      worker_, options_.in_fd, -1, mcp::message_limits.max_bytes,
      net::LineReader::Handlers{.line = [this](const std::string& line) { take_line(line, nullptr); },
                                .too_long =
                                    [this] {
                                      answer(mcp::encode_error("", protocol::parse_error_code,
                                                               fmt::format("the line is longer than {} bytes",
                                                                           mcp::message_limits.max_bytes)),
                                             nullptr);
                                    },
                                .end = [this](net::LineReader::End) { wait_for_answers(); }});
}

void StdioEndpoint::Conversation::answer(std::string message, const std::shared_ptr<Batch>& batch) {
  if (batch != nullptr) return batch->add(std::move(message));
  output_->send(std::move(message));
}

void StdioEndpoint::Conversation::take_line(std::string_view line, const std::shared_ptr<Batch>& batch) {
  line = trim(line);
  if (line.empty() || has_ended_) return;
  auto message = mcp::parse_message(line);
  if (!message) {
    bool may_be_batch = batch == nullptr && session_ != nullptr && session_->is_initialized() &&
                        session_->revision() == mcp::Revision::v2025_03_26 && mcp::is_batch(line);
    return may_be_batch ? take_batch(line) : answer(mcp::encode_fault(message.error()), batch);
  }
  if (message->kind == mcp::MessageKind::request) return take_request(*message, line, batch);
  take_other(*message, line);
}

void StdioEndpoint::Conversation::take_batch(std::string_view line) {
  auto elements = mcp::split_batch(line);
  if (!elements) return answer(mcp::encode_fault(elements.error()), nullptr);
  auto batch = std::make_shared<Batch>(output_);
  for (std::string_view element : *elements)
    take_line(element, batch);
}

Session* StdioEndpoint::Conversation::session() {
  if (session_ != nullptr) return session_.get();
  session_ = core_.open_session(client());
  if (session_ != nullptr) {
    session_->set_unsolicited([output = output_](std::string message) { output->send(std::move(message)); });
  }
  return session_.get();
}

void StdioEndpoint::Conversation::take_request(const mcp::Message& message, std::string_view text,
                                               const std::shared_ptr<Batch>& batch) {
  auto meta = mcp::parse_meta(message);
  if (!meta) return answer(mcp::encode_fault(meta.error()), batch);
  if (meta->has_modern_keys || message.method == "server/discover") return take_modern(message, text, batch);
  Session* legacy = session();
  if (legacy == nullptr) {
    return answer(mcp::encode_error(message.id, protocol::internal_error_code, "there are too many sessions"), batch);
  }
  auto reply = std::make_shared<LineReply>(
      LineReply::Place{.output = output_, .in_flight = in_flight_, .batch = batch, .key = {}});
  legacy->request(worker_, client(), std::string(text), std::move(reply));
}

void StdioEndpoint::Conversation::take_modern(const mcp::Message& message, std::string_view text,
                                              const std::shared_ptr<Batch>& batch) {
  std::string key = mcp::id_key(message.id);
  if (!in_flight_->enter(key)) {
    return answer(
        mcp::encode_error(message.id, protocol::invalid_request_code,
                          fmt::format("the id {} is in flight already, or {} requests are", message.id, max_in_flight)),
        batch);
  }
  auto reply = std::make_shared<LineReply>(LineReply::Place{.output = output_,
                                                            .in_flight = in_flight_,
                                                            .batch = batch,
                                                            .key = key,
                                                            .is_waited_for = message.method != "subscriptions/listen"});
  auto running = core_.request(worker_, client(), std::string(text), std::move(reply));
  if (running != nullptr) in_flight_->set(key, std::move(running));
}

// A notification, or an answer to a question of ours.
void StdioEndpoint::Conversation::take_other(const mcp::Message& message, std::string_view text) {
  if (message.method == "notifications/cancelled" && !message.params.empty()) {
    auto params = json::parse_object(message.params, mcp::message_limits);
    auto id = params ? json::find(*params, "requestId") : std::nullopt;
    auto running = id ? in_flight_->leave(mcp::id_key(*id)) : nullptr;
    if (running != nullptr) return running->cancel("withdrawn by the client");
  }
  if (session_ != nullptr) session_->accept(client(), std::string(text));
}

void StdioEndpoint::Conversation::wait_for_answers() {
  if (has_ended_) return;
  patience_ = worker_.schedule(options_.last_answers, [this] { end(); });
  in_flight_->when_none(ending());
}

// For any thread. It becomes an owner on the worker only: the output's own thread must not be the last one.
std::function<void()> StdioEndpoint::Conversation::ending() {
  return [&worker = worker_, weak = weak_from_this()] {
    worker.post([weak] {
      if (auto self = weak.lock()) self->end();
    });
  };
}

void StdioEndpoint::Conversation::end() {
  if (std::exchange(has_ended_, true)) return;
  patience_.cancel();
  withdraw("the client has gone");
  options_.ended();
}

void StdioEndpoint::Conversation::withdraw(std::string_view reason) {
  for (const std::shared_ptr<Running>& running : in_flight_->leave_all())
    running->cancel(reason);
  if (auto session = std::exchange(session_, nullptr)) session->close();
}

void StdioEndpoint::Conversation::close() {
  has_ended_ = true;
  patience_.cancel();
  reader_.reset();
  withdraw("the gateway stops");
}

StdioEndpoint::StdioEndpoint(std::shared_ptr<Conversation> conversation) : conversation_(std::move(conversation)) {}

std::unique_ptr<StdioEndpoint> StdioEndpoint::start(Core& core, net::Worker& worker, Options options) {
  auto conversation = std::make_shared<Conversation>(core, worker, std::move(options));
  conversation->start();
  return std::unique_ptr<StdioEndpoint>(new StdioEndpoint(std::move(conversation)));
}

StdioEndpoint::~StdioEndpoint() {
  std::promise<void> closed;
  conversation_->worker().post([this, &closed] {
    conversation_->close();
    closed.set_value();
  });
  closed.get_future().wait();
  conversation_->output().finish(last_writes);
}

}  // namespace hive::mcp_surface
