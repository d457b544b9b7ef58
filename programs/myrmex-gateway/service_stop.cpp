#include <future>
#include <thread>

#include "base/log.h"
#include "service_state.h"

namespace hive::gateway {

void Service::stop(std::chrono::milliseconds patience, std::chrono::milliseconds last_words) {
  State& state = *state_;
  {
    std::lock_guard lock(state.reload_mutex);
    if (std::exchange(state.stopped, true)) return;
  }
  log::info("stopping", {{"calls_in_flight", state.funnel->in_flight()}});
  state.ready = false;
  if (state.watchdog != nullptr) state.watchdog->stop_asking();
  state.ssh_server->stop_accepting();
  state.session_watch->stop();
  state.mcp->close_core();
  if (state.approvals != nullptr) state.approvals->close();
  // What was decided until now becomes a call, or an end, before the funnel is drained.
  state.wait_for_records();
  auto drained = std::make_shared<std::promise<void>>();
  std::future<void> all_ended = drained->get_future();
  state.funnel->drain([drained] { drained->set_value(); });
  if (all_ended.wait_for(patience) != std::future_status::ready) {
    log::warning("withdrawing the calls that still run", {{"calls_in_flight", state.funnel->in_flight()}});
    state.funnel->cancel_all("the gateway stops");
    if (all_ended.wait_for(last_words) != std::future_status::ready) {
      log::error("some calls did not end", {{"calls_in_flight", state.funnel->in_flight()}});
    }
  }
  state.stdio.reset();
  state.close_http(std::min<std::chrono::milliseconds>(last_words, std::chrono::seconds(2)));
  state.mcp->close_upstreams();
  state.fleet->close("the gateway stops");
  state.api->flush();
  state.events->gateway_stopped({});
  if (state.log != nullptr) {
    if (auto flushed = state.log->flush(); !flushed) {
      log::error("the end of the audit log is not on disk", {{"reason", flushed.error().message}});
    }
  }
  state.wait_for_workers();
  state.https_server.reset();
  state.http_server.reset();
  state.ssh_server.reset();
  state.runtime.stop();
  if (auto written = state.last_known->close(); !written) {
    log::error("what is known of the fleet is not on disk", {{"reason", written.error().message}});
  }
  state.wait_for_records();
  state.mcp.reset();
  state.database.reset();
  // What was recorded meanwhile is written now, while the workers that its callbacks post to still exist.
  state.log.reset();
  log::info("stopped");
}

// The last answers are still being written when the last call has ended.
void Service::State::close_http(std::chrono::milliseconds limit) {
  constexpr std::chrono::milliseconds pause{5};
  auto deadline = clock.steady_now() + limit;
  for (net::http::Server* server : {https_server.get(), http_server.get()}) {
    if (server == nullptr) continue;
    server->drain();
    while (server->open_connections() > 0 && clock.steady_now() < deadline)
      std::this_thread::sleep_for(pause);
  }
}

// What the database and the log were given before this is done, and what followed from it as well. A log that cannot
// write tells those who wait for it; here nobody does.
void Service::State::wait_for_records() {
  for (int round = 0; round < 2; ++round) {
    database->run([](store::Connection&) {});
    if (log != nullptr) (void)log->flush();
  }
}

// Everything that was posted before this has run: farewells to agents are on their way.
void Service::State::wait_for_workers() {
  for (int round = 0; round < 3; ++round) {
    for (size_t i = 0; i < runtime.size(); ++i) {
      std::promise<void> reached;
      runtime.worker(i).post([&reached] { reached.set_value(); });
      reached.get_future().wait();
    }
  }
}

}  // namespace hive::gateway
