#pragma once

#include <memory>

#include "base/clock.h"
#include "gateway/fleet/fleet.h"
#include "net/ssh/line_channel.h"

namespace hive::fleet {

/// Answers the questions that `myrmex-agent doctor` asks over a channel of its own, which is never registered: the
/// agent's tunnel, if there is one, goes on. Each line {"jsonrpc":"2.0","id":...,"method":"probe"} gets the gateway's
/// time and version, and whether the agent is online. A few lines and a few seconds, then the channel is closed. Call
/// it on the channel's worker; `fleet` and `clock` must outlive the runtime.
void answer_probe(std::shared_ptr<net::ssh::LineChannel> channel, const Fleet& fleet, const Clock& clock);

}  // namespace hive::fleet
