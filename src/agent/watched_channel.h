#pragma once

#include <functional>
#include <memory>

#include "net/ssh/line_channel.h"

namespace hive::agent {

/// A channel that also tells a watcher about lines and about its end, whoever its handler is. On the channel's worker.
std::shared_ptr<net::ssh::LineChannel> watch_channel(std::shared_ptr<net::ssh::LineChannel> channel,
                                                     std::function<void(std::string_view)> on_line,
                                                     std::function<void(const Error&)> on_closed);

}  // namespace hive::agent
