#pragma once

#include <cstdint>
#include <optional>

struct ssh_channel_struct;

namespace hive::net::ssh {

/// The largest packet that the peer announced for an accepted channel, or nullopt when it cannot be told.
///
/// libssh subtracts 10 from it without a look. A peer that announces exactly 10 makes ssh_channel_write() send empty
/// packets until a quarter of a gigabyte is queued, which stops a worker for many seconds; slightly larger figures make
/// a packet of every byte. There is no public way to learn the figure, so it is read from libssh's own record, and only
/// when three neighbours that are known otherwise stand where they should.
std::optional<std::uint32_t> peer_max_packet(ssh_channel_struct* channel);

/// RFC 4253 section 6.1 asks every side to take 32768 bytes; nobody honest announces less than this.
inline constexpr std::uint32_t min_peer_packet = 4096;

}  // namespace hive::net::ssh
