#pragma once

#include <string>
#include <string_view>

#include "gateway/upstreams/upstreams.h"

namespace hive::rest {

/// Appends what is known of an upstream server as an element of an open array. `raw_held_back`: the array of its tools
/// that wait for an admin; empty: it is left out.
void append_upstream(std::string& out, const upstreams::UpstreamStatus& status, std::string_view raw_held_back = {});

}  // namespace hive::rest
