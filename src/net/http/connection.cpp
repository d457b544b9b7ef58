#include "net/http/connection.h"

#include <exception>

#include "base/log.h"

namespace hive::net::http {

namespace {

constexpr std::size_t max_pipelined_bytes = 16384;
constexpr std::size_t max_copied_body_bytes = 65536;
constexpr std::size_t max_kept_buffer_bytes = 4096;
constexpr std::size_t max_lingered_bytes = 262144;
constexpr std::size_t min_bytes_a_second = 8192;
constexpr std::chrono::seconds linger_timeout(2);
constexpr auto never = std::chrono::steady_clock::time_point::max();

std::chrono::steady_clock::time_point after(std::chrono::milliseconds delay) {
  return std::chrono::steady_clock::now() + delay;
}

}  // namespace

Connection::Connection(std::shared_ptr<ServerState> server, Shard& shard, Socket socket, SslPointer ssl,
                       ConnectionLimits::Slot slot, Addresses addresses)
    : server_(std::move(server)),
      shard_(shard),
      socket_(std::move(socket)),
      transport_(socket_.native_handle(), std::move(ssl)),
      slot_(std::move(slot)),
      addresses_(std::move(addresses)),
      phase_(transport_.is_tls() ? Phase::handshaking : Phase::reading),
      deadline_(after(server_->options.header_timeout)) {}

Connection::~Connection() {
  release_body_account();
}

void Connection::start() {
  wait_readable();
}

void Connection::wait_readable() {
  if (waiting_readable_ || peer_closed_ || phase_ == Phase::closed || has_enough_input()) return;
  waiting_readable_ = true;
  socket_.async_wait(Socket::wait_read, [self = shared_from_this()](const boost::system::error_code& error) {
    self->waiting_readable_ = false;
    if (!error && self->phase_ != Phase::closed) self->on_readable();
  });
}

void Connection::wait_writable() {
  if (waiting_writable_ || phase_ == Phase::closed) return;
  waiting_writable_ = true;
  socket_.async_wait(Socket::wait_write, [self = shared_from_this()](const boost::system::error_code& error) {
    self->waiting_writable_ = false;
    if (!error && self->phase_ != Phase::closed) self->on_writable();
  });
}

void Connection::on_readable() {
  if (phase_ == Phase::handshaking) {
    continue_handshake();
  } else if (phase_ == Phase::lingering) {
    discard_input();
  } else {
    receive();
    // TLS may have waited for input before it could write.
    if (!output_.empty() && !waiting_writable_) flush();
  }
}

void Connection::on_writable() {
  if (phase_ == Phase::handshaking) {
    continue_handshake();
  } else if (output_.empty()) {
    receive();  // TLS waited to write before it could read
  } else {
    flush();
  }
}

bool Connection::has_enough_input() const {
  return phase_ != Phase::reading && input_.size() >= max_pipelined_bytes;
}

void Connection::continue_handshake() {
  switch (transport_.handshake().status) {
    case Transport::Status::ok:
      client_certificate_ = transport_.client_certificate();
      phase_ = Phase::reading;
      receive();
      return;
    case Transport::Status::want_read:
      wait_readable();
      return;
    case Transport::Status::want_write:
      wait_writable();
      return;
    default:
      break;
  }
  if (std::string problem = transport_.client_certificate_problem(); !problem.empty()) {
    if (server_->may_warn()) {
      log::warning("a client certificate is not accepted", {{"peer", addresses_.peer}, {"reason", problem}});
    }
    return linger();  // its request may be on the way already, and closing at once would cost it the alert
  }
  if (!transport_.met_plain_http()) return close();
  transport_.abandon_tls();
  phase_ = Phase::reading;
  refuse({400, "tls_required", "this port speaks HTTPS; use a URL that begins with https://"});
}

void Connection::receive() {
  while (phase_ != Phase::closed && phase_ != Phase::lingering) {
    std::span<char> buffer = shard_.read_buffer;
    Transport::Outcome outcome = transport_.read_some(buffer);
    switch (outcome.status) {
      case Transport::Status::ok:
        break;
      case Transport::Status::want_read:
        return wait_readable();
      case Transport::Status::want_write:
        return wait_writable();
      case Transport::Status::closed:
        return on_peer_closed();
      case Transport::Status::failed:
        return close();
    }
    process({buffer.data(), outcome.count});
    // A short read has emptied the socket; the next wait tells of more.
    bool more = transport_.is_tls() ? transport_.has_buffered_input() : outcome.count == buffer.size();
    if (!more || has_enough_input()) break;
  }
  if (phase_ != Phase::closed) wait_readable();
}

void Connection::discard_input() {
  Transport::Outcome outcome = transport_.read_some(shard_.read_buffer);
  lingered_bytes_ += outcome.count;
  bool go_on = outcome.status == Transport::Status::ok || outcome.status == Transport::Status::want_read;
  if (!go_on || lingered_bytes_ > max_lingered_bytes) return close();
  wait_readable();
}

void Connection::on_peer_closed() {
  peer_closed_ = true;
  keep_alive_ = false;
  switch (phase_) {
    case Phase::working:
      run_disconnect_task();  // but it may only have ended its sending side, and still read an answer
      break;
    case Phase::writing:
      break;
    default:
      close();
  }
}

void Connection::process(std::string_view fresh) {
  std::string joined;
  std::string_view data = fresh;
  if (!input_.empty()) {
    joined = std::exchange(input_, {});
    joined.append(fresh);
    data = joined;
  }
  processing_ = true;
  while (phase_ == Phase::reading && !data.empty()) {
    if (!parser_) parser_ = shard_.acquire_parser(server_->parser_limits);
    data.remove_prefix(parser_->feed(data));
    if (std::optional<Refusal> refusal = account_body()) {
      refuse(*std::move(refusal));
    } else if (parser_->state() == RequestParser::State::failed) {
      refuse(parser_->refusal());
    } else if (parser_->state() == RequestParser::State::complete) {
      dispatch();
    } else {
      update_stage();
      break;
    }
  }
  processing_ = false;
  if (phase_ == Phase::closed || phase_ == Phase::lingering || data.empty()) return;
  if (data.size() == joined.size()) {
    input_ = std::move(joined);
  } else {
    input_.assign(data);
  }
}

void Connection::update_stage() {
  Stage now = Stage::idle;
  if (parser_ && parser_->has_begun()) {
    now = parser_->state() == RequestParser::State::body ? Stage::body : Stage::head;
  }
  if (now == Stage::body && parser_->expects_continue() && !sent_continue_ && parser_->body_size() == 0) {
    sent_continue_ = true;
    write("HTTP/1.1 100 Continue\r\n\r\n", {});
    if (phase_ == Phase::closed) return;
  }
  if (now == stage_) return;
  // The first request of a connection has its deadline from the moment of the connection.
  stage_ = now;
  if (now == Stage::head) deadline_ = after(server_->options.header_timeout);
  if (now == Stage::body) deadline_ = after(server_->options.body_timeout);
}

std::optional<Refusal> Connection::account_body() {
  std::size_t size = parser_->body_size();
  if (size <= counted_body_bytes_) return std::nullopt;
  std::size_t added = size - counted_body_bytes_;
  counted_body_bytes_ = size;
  std::size_t all = server_->buffered_body_bytes.fetch_add(added, std::memory_order_relaxed) + added;
  std::size_t of_source = slot_.source_body_bytes().fetch_add(added, std::memory_order_relaxed) + added;
  if (of_source > server_->max_source_body_bytes) {
    return Refusal{429, "overloaded",
                   "too many request bodies are arriving from your address at once; try again later"};
  }
  if (all > server_->options.max_buffered_body_bytes) {
    return Refusal{503, "overloaded", "too many request bodies are arriving at once; try again later"};
  }
  return std::nullopt;
}

void Connection::release_body_account() {
  if (counted_body_bytes_ == 0) return;
  server_->buffered_body_bytes.fetch_sub(counted_body_bytes_, std::memory_order_relaxed);
  slot_.source_body_bytes().fetch_sub(counted_body_bytes_, std::memory_order_relaxed);
  counted_body_bytes_ = 0;
}

void Connection::dispatch() {
  if (is_outdated()) {
    return refuse({421, "reconnect", "the gateway's client authorities have been read again; open a new connection"});
  }
  std::shared_ptr<Request> request = parser_->take();
  request->peer_address = addresses_.peer;
  request->local_address = addresses_.local;
  request->is_tls = transport_.is_tls();
  request->client_certificate = client_certificate_;
  request->worker = &shard_.worker();
  keep_alive_ = parser_->keeps_alive() && !peer_closed_;
  is_http_1_0_ = parser_->is_http_1_0();
  is_head_request_ = request->method == "HEAD";
  sent_continue_ = false;
  release_body_account();
  shard_.release_parser(std::move(parser_));
  phase_ = Phase::working;
  deadline_ = never;
  exchange_open_ = true;
  auto exchange =
      std::make_shared<Exchange>(weak_from_this(), shard_.worker(), ++number_, server_->options.max_stream_queue_bytes);
  exchange_ = exchange;
  try {
    server_->handler(std::move(request), std::move(exchange));
  } catch (const std::exception& error) {
    // Handlers report failures as answers; this is a mistake of ours. What they hold answers 500 when it is dropped.
    log::error("a request handler failed", {{"reason", error.what()}});
  }
}

void Connection::refuse(Refusal refusal) {
  std::string id = server_->next_refusal_id();
  log::debug("request refused",
             {{"peer", addresses_.peer}, {"id", id}, {"code", refusal.code}, {"detail", refusal.detail}});
  release_body_account();
  shard_.release_parser(std::move(parser_));
  keep_alive_ = false;
  is_http_1_0_ = is_head_request_ = false;
  exchange_open_ = true;
  respond(++number_, problem_response(refusal, id));
}

void Connection::respond(std::uint64_t number, Response response) {
  if (!is_current(number) || phase_ == Phase::closed) return;
  if (server_->draining.load(std::memory_order_relaxed) || is_outdated()) keep_alive_ = false;
  exchange_open_ = false;
  phase_ = Phase::writing;
  std::string& out = shard_.write_buffer;
  out.clear();
  append_head(out, response, server_->options.default_headers,
              {.keep_alive = keep_alive_, .say_keep_alive = is_http_1_0_, .content_length = response.body.size()});
  std::string body;
  if (!is_head_request_ && !has_no_body(response.status)) {
    if (response.body.size() <= max_copied_body_bytes) {
      out += response.body;
    } else {
      body = std::move(response.body);
    }
  }
  write(out, std::move(body));
  if (out.capacity() > 2 * max_copied_body_bytes) out = {};
}

void Connection::begin_stream(std::uint64_t number, Response head) {
  if (!is_current(number) || phase_ != Phase::working) return;
  is_chunked_ = !is_http_1_0_;
  if (is_http_1_0_ || server_->draining.load(std::memory_order_relaxed)) keep_alive_ = false;
  phase_ = Phase::streaming;
  std::string& out = shard_.write_buffer;
  out.clear();
  append_head(out, head, server_->options.default_headers,
              {.keep_alive = keep_alive_,
               .say_keep_alive = is_http_1_0_,
               .framing = is_chunked_ ? BodyFraming::chunked : BodyFraming::until_close});
  write(out, {});
}

void Connection::stream_piece(std::uint64_t number, std::string_view piece) {
  if (!is_current(number) || phase_ != Phase::streaming || is_head_request_) return;
  if (!is_chunked_) return write(piece, {});
  std::string& out = shard_.write_buffer;
  out.clear();
  append_chunk(out, piece);
  write(out, {});
  if (out.capacity() > 2 * max_copied_body_bytes) out = {};
}

void Connection::end_stream(std::uint64_t number) {
  if (!is_current(number) || phase_ != Phase::streaming) return;
  exchange_open_ = false;
  phase_ = Phase::writing;
  // A large last piece may still be on its way, and gets the time of an answer of that size.
  std::size_t unsent = output_.size() - output_written_;
  if (unsent > 0) deadline_ = after(server_->options.write_timeout + std::chrono::seconds(unsent / min_bytes_a_second));
  write(is_chunked_ && !is_head_request_ ? "0\r\n\r\n" : "", {});
}

void Connection::cut_stream(std::uint64_t number) {
  if (is_current(number)) close();
}

void Connection::set_disconnect_task(std::uint64_t number, Task task) {
  bool answered = number != number_ || (!exchange_open_ && phase_ != Phase::writing);
  if (phase_ == Phase::closed || (peer_closed_ && !answered)) {
    task();
  } else if (!answered) {
    disconnect_task_ = std::move(task);
  }
}

void Connection::write(std::string_view bytes, std::string body) {
  if (!output_.empty() || !output_body_.empty()) {
    // Only a stream, or an answer behind "100 Continue", gets here: never behind a large body.
    output_.append(bytes);
    output_body_ = std::move(body);
    if (deadline_ == never) deadline_ = after(server_->options.write_timeout);
    return flush();
  }
  // The usual case: all of it goes to the kernel at once, and nothing is copied or kept.
  std::size_t written = 0;
  while (written < bytes.size()) {
    Transport::Outcome outcome = transport_.write_some(bytes.substr(written), !body.empty());
    if (outcome.status == Transport::Status::ok) {
      written += outcome.count;
      continue;
    }
    if (outcome.status == Transport::Status::failed || outcome.status == Transport::Status::closed) return close();
    break;
  }
  if (written == bytes.size() && body.empty()) return on_written();
  output_.assign(bytes.substr(written));
  output_written_ = 0;
  output_body_ = std::move(body);
  std::size_t total = output_.size() + output_body_.size();
  deadline_ = after(server_->options.write_timeout + std::chrono::seconds(total / min_bytes_a_second));
  flush();
}

void Connection::flush() {
  while (true) {
    if (output_written_ == output_.size()) {
      output_ = std::exchange(output_body_, {});
      output_written_ = 0;
      if (output_.empty()) break;
    }
    Transport::Outcome outcome =
        transport_.write_some(std::string_view(output_).substr(output_written_), !output_body_.empty());
    if (outcome.status == Transport::Status::ok) {
      output_written_ += outcome.count;
      if (phase_ == Phase::streaming) deadline_ = after(server_->options.write_timeout);
      continue;
    }
    if (outcome.status == Transport::Status::failed || outcome.status == Transport::Status::closed) return close();
    if (auto exchange = exchange_.lock()) exchange->set_unsent(output_.size() - output_written_);
    return outcome.status == Transport::Status::want_read ? wait_readable() : wait_writable();
  }
  if (output_.capacity() > max_kept_buffer_bytes) output_ = {};
  if (auto exchange = exchange_.lock()) exchange->set_unsent(0);
  on_written();
}

void Connection::on_written() {
  if (phase_ == Phase::writing) {
    finish_answer();
  } else if (phase_ == Phase::streaming) {
    deadline_ = never;
  }
}

void Connection::finish_answer() {
  disconnect_task_ = nullptr;
  exchange_.reset();
  if (!keep_alive_) return linger();
  phase_ = Phase::reading;
  stage_ = Stage::idle;
  deadline_ = after(server_->options.idle_timeout);
  if (processing_) return;  // further down the stack, and goes on with what is there
  if (!input_.empty()) process({});
  if (phase_ != Phase::closed) wait_readable();
}

void Connection::linger() {
  transport_.end_sending();
  if (peer_closed_) return close();
  transport_.abandon_tls();
  phase_ = Phase::lingering;
  input_ = {};
  deadline_ = after(linger_timeout);
  wait_readable();
}

bool Connection::is_outdated() const {
  return client_certificate_ && !transport_.belongs_to(server_->tls_context().get());
}

void Connection::on_deadline() {
  if (phase_ == Phase::reading && parser_ && parser_->has_begun() && output_.empty()) {
    return refuse({408, "request_timeout",
                   stage_ == Stage::body ? "the request body took too long to arrive"
                                         : "the request head took too long to arrive"});
  }
  close();
}

void Connection::close_if_idle() {
  if (phase_ == Phase::handshaking) return close();
  if (phase_ == Phase::reading && (!parser_ || !parser_->has_begun()) && output_.empty()) linger();
}

void Connection::run_disconnect_task() {
  if (auto exchange = exchange_.lock()) exchange->mark_gone();
  if (Task task = std::exchange(disconnect_task_, nullptr)) task();
}

void Connection::close() {
  if (phase_ == Phase::closed) return;
  std::shared_ptr<Connection> self = shared_from_this();
  phase_ = Phase::closed;
  deadline_ = never;
  exchange_open_ = false;
  release_body_account();
  shard_.release_parser(std::move(parser_));
  boost::system::error_code ignored;
  socket_.close(ignored);
  input_ = output_ = output_body_ = {};
  run_disconnect_task();
  shard_.remove(*self);
}

}  // namespace hive::net::http
