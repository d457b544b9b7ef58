#include "net/ssh/peer_packet.h"

#include <cstring>

#include <libssh/libssh.h>

namespace hive::net::ssh {

namespace {

/// How ssh_channel_struct of libssh 0.10 begins.
struct ChannelStart {
  void* session;
  std::uint32_t local_channel;
  std::uint32_t local_window;
  int local_eof;
  std::uint32_t local_max_packet;
  std::uint32_t remote_channel;
  std::uint32_t remote_window;
  int remote_eof;
  std::uint32_t remote_max_packet;
};

/// What libssh announces for a channel that it accepts.
constexpr std::uint32_t accepted_max_packet = 35000;

}  // namespace

std::optional<std::uint32_t> peer_max_packet(ssh_channel_struct* channel) {
  ChannelStart start{};
  std::memcpy(&start, static_cast<const void*>(channel), sizeof(start));
  const bool as_expected = start.session == ssh_channel_get_session(channel) &&
                           start.local_max_packet == accepted_max_packet &&
                           start.remote_window == ssh_channel_window_size(channel);
  if (!as_expected) return std::nullopt;
  return start.remote_max_packet;
}

}  // namespace hive::net::ssh
