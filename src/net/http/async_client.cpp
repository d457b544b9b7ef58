#include "net/http/async_client.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <curl/curl.h>

#include "base/log.h"
#include "net/http/curl_transfer.h"

namespace hive::net::http {

namespace {

constexpr int max_poll_ms = 60'000;

/// One request. The part in the middle is touched by both threads; the first by the client's alone, the last by the
/// worker alone.
struct Exchange {
  Exchange(Worker& used_worker, RequestOptions options, AsyncHandlers used_handlers)
      : request(std::move(options)), worker(used_worker), handlers(std::move(used_handlers)) {}

  RequestOptions request;
  Target target;
  CurlEasy easy;
  std::optional<Transfer> transfer;
  bool head_is_delivered = false;
  bool is_paused = false;
  std::uint64_t id = 0;

  Worker& worker;
  std::size_t window_bytes = 0;
  bool streams = false;
  std::atomic<std::size_t> waiting_bytes = 0;
  std::atomic<bool> is_cancelled = false;
  std::function<void()> wants_more;  ///< asks the client's thread to go on after a pause

  AsyncHandlers handlers;
};

using ExchangePtr = std::shared_ptr<Exchange>;

void deliver_head(const ExchangePtr& exchange) {
  exchange->head_is_delivered = true;
  exchange->transfer->read_status();
  if (!exchange->handlers.on_head) return;
  exchange->worker.post([exchange, head = exchange->transfer->response] {
    if (!exchange->is_cancelled) exchange->handlers.on_head(head);
  });
}

void deliver_data(const ExchangePtr& exchange, std::string_view piece) {
  exchange->waiting_bytes += piece.size();
  exchange->worker.post([exchange, text = std::string(piece)] {
    if (!exchange->is_cancelled) exchange->handlers.on_data(text);
    std::size_t before = exchange->waiting_bytes.fetch_sub(text.size());
    // Only the piece that crosses the mark asks, so that a stream of small pieces costs few wake-ups.
    std::size_t mark = exchange->window_bytes / 2;
    if (before > mark && before - text.size() <= mark) exchange->wants_more();
  });
}

void finish(const ExchangePtr& exchange, Result<ClientResponse> result,
            const std::shared_ptr<std::atomic<std::size_t>>& count) {
  exchange->worker.post([exchange, moved = std::move(result), count]() mutable {
    auto done = std::move(exchange->handlers.done);
    exchange->handlers = {};  // they may hold on to whoever sent the request
    count->fetch_sub(1);
    if (done) done(std::move(moved));
  });
}

size_t on_header(char* data, size_t size, size_t count, void* context) {
  auto& exchange = *static_cast<ExchangePtr*>(context);
  return exchange->transfer->take_header_line({data, size * count}) ? size * count : 0;
}

size_t on_body(char* data, size_t size, size_t count, void* context) {
  auto& exchange = *static_cast<ExchangePtr*>(context);
  std::string_view piece(data, size * count);
  if (exchange->streams && exchange->waiting_bytes >= exchange->window_bytes) {
    exchange->is_paused = true;
    return CURL_WRITEFUNC_PAUSE;
  }
  if (!exchange->transfer->count_body(piece.size())) return 0;
  if (!exchange->head_is_delivered) deliver_head(exchange);
  if (exchange->streams) {
    deliver_data(exchange, piece);
  } else {
    exchange->transfer->response.body.append(piece);
  }
  return piece.size();
}

}  // namespace

struct AsyncClientReference::State {
  explicit State(AsyncClientLimits used_limits) : limits(used_limits) {}

  void run();
  void take_commands();
  void begin(const ExchangePtr& exchange);
  void end(std::uint64_t id, Result<ClientResponse> result);
  void resume(const ExchangePtr& exchange);
  void read_ends();
  Result<void> check_ca_file_once(const RequestOptions& request);

  /// False when the client is gone.
  template <class Change>
  bool command(Change change) {
    {
      std::lock_guard lock(mutex);
      if (is_gone) return false;
      change(commands);
    }
    curl_multi_wakeup(multi.get());
    return true;
  }

  AsyncClientLimits limits;
  CurlMulti multi{curl_multi_init()};
  std::atomic<std::uint64_t> last_id = 0;
  // Counts down when the end was reported; shared, because a report may outlive the client on its worker's queue.
  std::shared_ptr<std::atomic<std::size_t>> count = std::make_shared<std::atomic<std::size_t>>(0);

  struct Commands {
    std::vector<ExchangePtr> begin;
    std::vector<std::uint64_t> cancel;
    std::vector<std::uint64_t> resume;
    bool stop = false;
  };
  std::mutex mutex;
  Commands commands;
  bool is_gone = false;  ///< under the mutex: nobody takes commands any more
  std::unordered_map<std::uint64_t, ExchangePtr>
      known;  ///< under the mutex: for cancel() before the thread has seen it

  // The thread's own.
  std::unordered_map<std::uint64_t, std::unique_ptr<ExchangePtr>> running;
  std::set<std::string> good_ca_files;
  bool stops = false;
  std::thread thread;
};

Result<void> AsyncClientReference::State::check_ca_file_once(const RequestOptions& request) {
  const std::string& path = request.ca_certificate_path;
  if (!request.verify_tls || path.empty() || good_ca_files.contains(path)) return {};
  TRY(check_ca_file(path));
  good_ca_files.insert(path);
  return {};
}

void AsyncClientReference::State::begin(const ExchangePtr& exchange) {
  std::uint64_t id = exchange->id;
  auto [entry, is_new] = running.emplace(id, std::make_unique<ExchangePtr>(exchange));
  auto refuse = [&](Error error) { end(id, std::unexpected(std::move(error))); };
  auto target = check_request(exchange->request);
  if (!target) return refuse(target.error());
  exchange->target = *std::move(target);
  if (exchange->is_cancelled) {
    return refuse({ErrorCode::cancelled, exchange->target.authority + ": cancelled before it was sent"});
  }
  if (running.size() > limits.max_transfers) {
    return refuse({ErrorCode::resource_exhausted, fmt::format("{}: {} requests are under way already",
                                                              exchange->target.authority, running.size() - 1)});
  }
  if (auto usable = check_ca_file_once(exchange->request); !usable) return refuse(usable.error());
  exchange->easy.reset(curl_easy_init());
  if (exchange->easy == nullptr) return refuse({ErrorCode::internal, "libcurl could not be started"});
  exchange->transfer.emplace(exchange->easy, exchange->request, exchange->target);
  if (auto ready = exchange->transfer->prepare(&on_header, &on_body, entry->second.get()); !ready) {
    return refuse(ready.error());
  }
  curl_easy_setopt(exchange->easy.get(), CURLOPT_PRIVATE, static_cast<void*>(entry->second.get()));
  if (CURLMcode code = curl_multi_add_handle(multi.get(), exchange->easy.get()); code != CURLM_OK) {
    exchange->easy.reset();
    refuse({ErrorCode::internal, fmt::format("{}: {}", exchange->target.authority, curl_multi_strerror(code))});
  }
}

void AsyncClientReference::State::end(std::uint64_t id, Result<ClientResponse> result) {
  auto entry = running.find(id);
  if (entry == running.end()) return;
  ExchangePtr exchange = *entry->second;
  if (exchange->easy != nullptr) {
    // An unfinished transfer's connection is closed by this, which is how the other side learns of the end.
    curl_multi_remove_handle(multi.get(), exchange->easy.get());
    exchange->easy.reset();
  }
  running.erase(entry);
  {
    std::lock_guard lock(mutex);
    known.erase(id);
  }
  finish(exchange, std::move(result), count);
}

void AsyncClientReference::State::resume(const ExchangePtr& exchange) {
  if (!exchange->is_paused) return;
  exchange->is_paused = false;
  // Delivers what libcurl holds, from within; it may pause again.
  curl_easy_pause(exchange->easy.get(), CURLPAUSE_CONT);
}

void AsyncClientReference::State::take_commands() {
  Commands taken;
  {
    std::lock_guard lock(mutex);
    taken = std::exchange(commands, {});
  }
  stops = stops || taken.stop;
  for (const ExchangePtr& exchange : taken.begin)
    begin(exchange);
  for (std::uint64_t id : taken.resume) {
    if (auto entry = running.find(id); entry != running.end()) resume(*entry->second);
  }
  for (std::uint64_t id : taken.cancel) {
    if (auto entry = running.find(id); entry != running.end()) {
      std::string authority = (*entry->second)->target.authority;
      end(id, fail(ErrorCode::cancelled, "{}: the answer was not wanted any more", authority));
    }
  }
}

void AsyncClientReference::State::read_ends() {
  int queued = 0;
  while (CURLMsg* message = curl_multi_info_read(multi.get(), &queued)) {
    if (message->msg != CURLMSG_DONE) continue;
    CURLcode code = message->data.result;
    ExchangePtr* context = nullptr;
    curl_easy_getinfo(message->easy_handle, CURLINFO_PRIVATE, &context);
    ExchangePtr exchange = *context;
    exchange->transfer->read_status();
    if (code == CURLE_OK && !exchange->head_is_delivered) deliver_head(exchange);
    Result<ClientResponse> result = [&]() -> Result<ClientResponse> {
      if (code != CURLE_OK) return exchange->transfer->describe(code);
      return std::move(exchange->transfer->response);
    }();
    end(exchange->id, std::move(result));
  }
}

void AsyncClientReference::State::run() {
  while (true) {
    take_commands();
    if (stops) break;
    int still_running = 0;
    if (CURLMcode code = curl_multi_perform(multi.get(), &still_running); code != CURLM_OK) {
      log::error("the HTTP client's transfers could not be driven", {{"reason", curl_multi_strerror(code)}});
    }
    read_ends();
    // Returns at once when somebody has called curl_multi_wakeup in the meantime.
    if (CURLMcode code = curl_multi_poll(multi.get(), nullptr, 0, max_poll_ms, nullptr); code != CURLM_OK) {
      log::error("the HTTP client cannot wait for its transfers", {{"reason", curl_multi_strerror(code)}});
    }
  }
  while (!running.empty()) {
    std::uint64_t id = running.begin()->first;
    end(id, fail(ErrorCode::cancelled, "the client is being closed"));
  }
}

Result<std::unique_ptr<AsyncClient>> AsyncClient::create(AsyncClientLimits limits) {
  initialise_curl();
  auto state = std::make_shared<AsyncClientReference::State>(limits);
  if (state->multi == nullptr) return fail(ErrorCode::internal, "libcurl could not be started");
  curl_multi_setopt(state->multi.get(), CURLMOPT_MAXCONNECTS, limits.max_idle_connections);
  try {
    state->thread = std::thread([raw = state.get()] { raw->run(); });
  } catch (const std::system_error& error) {
    return fail(ErrorCode::resource_exhausted, "the HTTP client's thread cannot be started: {}", error.what());
  }
  return std::unique_ptr<AsyncClient>(new AsyncClient(AsyncClientReference(std::move(state))));
}

AsyncClient::AsyncClient(AsyncClientReference reference) : reference_(std::move(reference)) {}

AsyncClient::~AsyncClient() {
  auto& state = *reference_.state_;
  state.command([&state](AsyncClientReference::State::Commands& commands) {
    commands.stop = true;
    state.is_gone = true;
  });
  state.thread.join();
}

std::uint64_t AsyncClient::send(Worker& worker, RequestOptions request, AsyncHandlers handlers) {
  return reference_.send(worker, std::move(request), std::move(handlers));
}

void AsyncClient::cancel(std::uint64_t id) {
  reference_.cancel(id);
}

std::size_t AsyncClient::transfers() const {
  return *reference_.state_->count;
}

AsyncClientReference::AsyncClientReference(std::shared_ptr<State> state) : state_(std::move(state)) {}

std::uint64_t AsyncClientReference::send(Worker& worker, RequestOptions request, AsyncHandlers handlers) const {
  auto exchange = std::make_shared<Exchange>(worker, std::move(request), std::move(handlers));
  std::uint64_t id = ++state_->last_id;
  exchange->id = id;
  exchange->streams = exchange->handlers.on_data != nullptr;
  exchange->window_bytes = state_->limits.window_bytes;
  exchange->wants_more = [weak = std::weak_ptr(state_), id] {
    auto state = weak.lock();
    if (state != nullptr) state->command([id](State::Commands& commands) { commands.resume.push_back(id); });
  };
  state_->count->fetch_add(1);
  bool is_taken = state_->command([&](State::Commands& commands) {
    state_->known.emplace(id, exchange);
    commands.begin.push_back(exchange);
  });
  if (!is_taken) finish(exchange, fail(ErrorCode::cancelled, "the client is closed"), state_->count);
  return id;
}

void AsyncClientReference::cancel(std::uint64_t id) const {
  state_->command([&](State::Commands& commands) {
    auto entry = state_->known.find(id);
    if (entry == state_->known.end()) return;
    entry->second->is_cancelled = true;
    commands.cancel.push_back(id);
  });
}

}  // namespace hive::net::http
