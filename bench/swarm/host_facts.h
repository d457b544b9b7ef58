#pragma once

#include <memory>

#include "net/ssh/line_channel.h"

namespace hive::swarm {

/// A channel whose get_system_info is answered with what a small host tells of itself. Ten thousand agents on one
/// machine would each read its table of 20,000 connections, which no real host has.
std::shared_ptr<net::ssh::LineChannel> answer_host_facts(std::shared_ptr<net::ssh::LineChannel> channel);

}  // namespace hive::swarm
