#pragma once

#include <functional>

#include "gateway/calls/passage.h"

namespace hive::calls {

/// Asks every gate about a call without running it (Funnel::explain). `done` runs once, on `worker`, later.
void explain_call(PassageHost& host, net::Worker& worker, Call call, std::move_only_function<void(Explanation)> done);

}  // namespace hive::calls
