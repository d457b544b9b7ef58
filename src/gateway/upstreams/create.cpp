#include <random>

#include "gateway/upstreams/registry.h"
#include "net/http/async_client.h"

namespace hive::upstreams {

namespace {

double random_share() {
  thread_local std::minstd_rand generator(std::random_device{}());
  return std::uniform_real_distribution<double>()(generator);
}

}  // namespace

Result<std::unique_ptr<Upstreams>> Upstreams::create(Dependencies dependencies) {
  std::shared_ptr<net::http::AsyncClient> client = TRY(net::http::AsyncClient::create());
  net::Runtime& runtime = dependencies.runtime;
  // The client lives as long as the last server that might still use it.
  auto connect = [client, &runtime](net::Worker& worker, ConnectionOptions options, ConnectionEvents events) {
    return Connection::create(worker, runtime, client.get(), std::move(options), std::move(events));
  };
  return std::make_unique<Registry>(dependencies, std::move(connect), Tuning(), random_share);
}

}  // namespace hive::upstreams
