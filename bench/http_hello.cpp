// A server whose handler does nothing, to measure what the HTTP room costs a request:
//   http_hello [PORT [WORKERS [CERTIFICATE KEY]]], then for example: wrk -t1 -c64 -d5 http://127.0.0.1:PORT/

#include <csignal>
#include <cstdlib>
#include <string>

#include <fmt/format.h>

#include "net/http/server.h"

int main(int argc, char** argv) {
  using namespace hive::net;
  http::ServerOptions options;
  options.listen_address = std::string("127.0.0.1:") + (argc > 1 ? argv[1] : "0");
  std::size_t workers = argc > 2 ? std::strtoul(argv[2], nullptr, 10) : 1;
  if (argc > 4) {
    options.tls_certificate_path = argv[3];
    options.tls_key_path = argv[4];
  }
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  Runtime runtime(workers);
  auto server = http::Server::listen(runtime, options, [](const auto&, const auto& responder) {
    responder->respond({.content_type = "text/plain", .body = "hello\n"});
  });
  if (!server) {
    fmt::print(stderr, "{}\n", server.error().message);
    return 1;
  }
  runtime.start();
  fmt::print("listening on port {}\n", (*server)->port());
  std::fflush(stdout);
  int signal = 0;
  sigwait(&signals, &signal);
  runtime.stop();
}
