#pragma once

#include <cstddef>
#include <memory>

#include "net/ssh/line_channel.h"
#include "net/ssh/session.h"

struct ssh_channel_struct;

namespace hive::net::ssh {

struct ChannelLimits {
  size_t max_line_bytes = size_t{4} << 20;
  size_t max_queued_bytes = size_t{8} << 20;
};

/// Makes an authenticated session with its one open channel into a LineChannel of `worker`. Call it there; from now on
/// the session is used on that thread only. Data that libssh holds already is not lost.
Result<std::shared_ptr<LineChannel>> make_session_channel(Worker& worker, Session session, ssh_channel_struct* channel,
                                                          Peer peer, ChannelLimits limits);

}  // namespace hive::net::ssh
