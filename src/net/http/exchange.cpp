#include "net/http/exchange.h"

#include <string>

#include "base/log.h"
#include "net/http/connection.h"

namespace hive::net::http {

Exchange::Exchange(std::weak_ptr<Connection> connection, Worker& worker, std::uint64_t number,
                   std::size_t max_queue_bytes)
    : connection_(std::move(connection)), worker_(worker), number_(number), max_queue_bytes_(max_queue_bytes) {}

Exchange::~Exchange() {
  Progress progress = progress_.load(std::memory_order_relaxed);
  // Without the connection there is nobody to answer, and perhaps no worker any more.
  if (progress == Progress::finished || connection_.expired()) return;
  worker_.dispatch([connection = std::move(connection_), number = number_, progress] {
    std::shared_ptr<Connection> alive = connection.lock();
    if (!alive) return;
    if (progress == Progress::streaming) {
      alive->cut_stream(number);
      return;
    }
    log::error("a request was dropped without an answer");
    alive->respond(number, problem_response({500, "internal", "the server lost this request; please report it"}));
  });
}

void Exchange::respond(Response response) {
  Progress expected = Progress::waiting;
  if (!progress_.compare_exchange_strong(expected, Progress::finished)) {
    log::error("a second answer to a request was dropped");
    return;
  }
  if (connection_.expired()) return;
  if (worker_.runs_here()) {
    if (auto alive = connection_.lock()) alive->respond(number_, std::move(response));
    return;
  }
  worker_.post([connection = connection_, number = number_, response = std::move(response)]() mutable {
    if (auto alive = connection.lock()) alive->respond(number, std::move(response));
  });
}

std::shared_ptr<Stream> Exchange::respond_stream(Response head) {
  Progress expected = Progress::waiting;
  if (!progress_.compare_exchange_strong(expected, Progress::streaming)) {
    log::error("a second answer to a request was dropped");
    mark_gone();
    return shared_from_this();
  }
  if (connection_.expired()) {
    mark_gone();
    return shared_from_this();
  }
  worker_.dispatch([connection = connection_, number = number_, head = std::move(head)]() mutable {
    if (auto alive = connection.lock()) alive->begin_stream(number, std::move(head));
  });
  return shared_from_this();
}

void Exchange::on_disconnect(Task task) {
  worker_.dispatch([connection = connection_, number = number_, task = std::move(task)]() mutable {
    if (auto alive = connection.lock()) {
      alive->set_disconnect_task(number, std::move(task));
    } else {
      task();
    }
  });
}

bool Exchange::send(std::string_view piece) {
  if (gone_ || connection_.expired() || progress_ != Progress::streaming) return false;
  if (piece.empty()) return true;
  std::size_t queued = posted_.fetch_add(piece.size()) + unsent_.load(std::memory_order_relaxed);
  // What is queued already counts, not the piece: a reader that keeps up may get an answer larger than the whole queue.
  if (queued >= max_queue_bytes_) {
    mark_gone();
    worker_.dispatch([connection = connection_, number = number_] {
      if (auto alive = connection.lock()) alive->cut_stream(number);
    });
    return false;
  }
  worker_.dispatch([self = shared_from_this(), text = std::string(piece)] {
    if (auto alive = self->connection_.lock()) alive->stream_piece(self->number_, text);
    self->posted_.fetch_sub(text.size());
  });
  return true;
}

void Exchange::end() {
  Progress expected = Progress::streaming;
  if (!progress_.compare_exchange_strong(expected, Progress::finished) || connection_.expired()) return;
  worker_.dispatch([connection = connection_, number = number_] {
    if (auto alive = connection.lock()) alive->end_stream(number);
  });
}

}  // namespace hive::net::http
