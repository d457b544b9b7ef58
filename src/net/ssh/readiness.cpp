#include "net/ssh/readiness.h"

#include <optional>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/basic_stream_descriptor.hpp>
#include <fcntl.h>

namespace hive::net::ssh {

namespace {
using Descriptor = boost::asio::posix::basic_stream_descriptor<boost::asio::io_context::executor_type>;
}

struct Readiness::State {
  explicit State(boost::asio::io_context& context) : readable(context.get_executor()) {}

  Descriptor readable;
  std::optional<Descriptor> writable;
  bool waits_readable = false;
  bool waits_writable = false;
  bool released = false;
};

Result<std::unique_ptr<Readiness>> Readiness::watch(Worker& worker, int fd) {
  auto state = std::make_shared<State>(worker.context());
  boost::system::error_code error;
  state->readable.assign(fd, error);
  if (error) return std::unexpected(system_error(error.value(), "watch a connection"));
  return std::unique_ptr<Readiness>(new Readiness(std::move(state)));
}

Readiness::Readiness(std::shared_ptr<State> state) : state_(std::move(state)) {}

Readiness::~Readiness() {
  release();
}

void Readiness::wait_readable(std::shared_ptr<Listener> listener) {
  if (state_->released || std::exchange(state_->waits_readable, true)) return;
  state_->readable.async_wait(Descriptor::wait_read, [state = state_, listener = std::move(listener)](
                                                         const boost::system::error_code& /*error*/) {
    state->waits_readable = false;
    if (!state->released) listener->on_ready();
  });
}

void Readiness::wait_writable(std::shared_ptr<Listener> listener) {
  if (state_->released || std::exchange(state_->waits_writable, true)) return;
  auto done = [state = state_, listener = std::move(listener)](const boost::system::error_code& /*error*/) {
    state->waits_writable = false;
    state->writable.reset();
    if (!state->released) listener->on_ready();
  };
  // On a duplicate: Asio never stops asking for EPOLLOUT on a descriptor that has waited for it once, and every later
  // wait for input would wake up twice. Without a free descriptor that is the smaller evil.
  const int copy = ::fcntl(state_->readable.native_handle(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) {
    state_->readable.async_wait(Descriptor::wait_write, std::move(done));
    return;
  }
  state_->writable.emplace(state_->readable.get_executor(), copy);
  state_->writable->async_wait(Descriptor::wait_write, std::move(done));
}

void Readiness::release() {
  if (std::exchange(state_->released, true)) return;
  state_->writable.reset();
  state_->readable.release();
}

}  // namespace hive::net::ssh
