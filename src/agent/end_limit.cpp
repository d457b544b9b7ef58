#include "agent/end_limit.h"

#include <cstdio>

#include <unistd.h>

#include "base/log.h"

namespace hive::agent {

EndLimit::EndLimit(std::chrono::milliseconds limit)
    : thread_([future = ended_.get_future(), limit] {
        if (future.wait_for(limit) == std::future_status::ready) return;
        log::warning("ending at once, for something does not end in good order: a file system may hang");
        std::fflush(nullptr);
        ::_exit(0);
      }) {}

EndLimit::~EndLimit() {
  ended_.set_value();
  thread_.join();
}

}  // namespace hive::agent
