#include "net/ssh/ssh_fixture.h"

#include <cstdlib>

#include "base/file.h"

namespace hive::net::ssh {

TemporaryFolder::TemporaryFolder() {
  std::string name = (std::filesystem::temp_directory_path() / "hive-ssh-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error("mkdtemp failed");
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void SshFixture::TearDown() {
  server.reset();
  runtime.stop();
}

void SshFixture::start_server(const std::function<void(ServerOptions&)>& change) {
  const auto host = crypto::PrivateKey::generate("host");
  const auto agent = crypto::PrivateKey::generate("agent-1");
  const auto stranger = crypto::PrivateKey::generate("agent-1");
  ASSERT_TRUE(host && agent && stranger);
  ASSERT_TRUE(write_file_atomically(folder.path("host"), host->to_openssh(), 0600));
  ASSERT_TRUE(write_file_atomically(folder.path("agent"), agent->to_openssh(), 0600));
  ASSERT_TRUE(write_file_atomically(folder.path("stranger"), stranger->to_openssh(), 0600));
  host_key = std::make_shared<crypto::PublicKey>(host->public_key());

  ServerOptions options;
  options.listen_address = "127.0.0.1:0";
  options.host_key_path = folder.path("host");
  options.authenticate = [known = agent->public_key()](const std::string& user, const crypto::PublicKey& key,
                                                       const std::string&) -> Result<void> {
    if (!user.starts_with("agent-")) return fail(ErrorCode::permission_denied, "no agent of this name");
    if (!(key == known)) return fail(ErrorCode::permission_denied, "key {} is not authorised", key.fingerprint());
    return {};
  };
  options.accept = [accepted = accepted](std::shared_ptr<LineChannel> channel) { accepted->put(std::move(channel)); };
  options.refused = [refusals = refusals](const std::string& address, const std::string& user,
                                          const std::string& reason) { refusals->put({address, user, reason}); };
  if (change) change(options);
  auto listening = Server::listen(runtime, std::move(options));
  ASSERT_TRUE(listening) << listening.error().message;
  server = std::move(*listening);
  runtime.start();
}

ClientOptions SshFixture::client_options() const {
  ClientOptions options;
  options.host = "127.0.0.1";
  options.port = server->port();
  options.user = "agent-1";
  options.private_key_path = folder.path("agent");
  options.verify_host_key = [expected = host_key](const crypto::PublicKey& key) -> Result<void> {
    if (key == *expected) return {};
    return fail(ErrorCode::permission_denied, "host key mismatch");
  };
  return options;
}

Result<std::shared_ptr<LineChannel>> SshFixture::connect_client(ClientOptions options) {
  Worker& worker = runtime.next_worker();
  std::promise<Result<std::shared_ptr<LineChannel>>> outcome;
  std::unique_ptr<ConnectAttempt> attempt;
  worker.post([&] {
    attempt = connect(runtime, worker, std::move(options),
                      [&](Result<std::shared_ptr<LineChannel>> result) { outcome.set_value(std::move(result)); });
  });
  auto future = outcome.get_future();
  if (future.wait_for(patience) != std::future_status::ready) {
    ADD_FAILURE() << "connect() told nothing in time";
    std::abort();
  }
  auto result = future.get();
  std::promise<void> freed;
  worker.post([&] {
    attempt.reset();
    freed.set_value();
  });
  freed.get_future().wait();
  return result;
}

SshFixture::Pair SshFixture::connect_pair() {
  Pair pair;
  auto client = connect_client(client_options());
  EXPECT_TRUE(client) << client.error().message;
  if (!client) return pair;
  pair.client = *client;
  pair.server = accepted->take();
  pair.client_handler = std::make_shared<RecordingHandler>();
  pair.server_handler = std::make_shared<RecordingHandler>();
  on_worker(*pair.client, [&] { pair.client->set_handler(pair.client_handler); });
  on_worker(*pair.server, [&] { pair.server->set_handler(pair.server_handler); });
  return pair;
}

void SshFixture::on_worker(LineChannel& channel, const std::function<void()>& task) {
  std::promise<void> done;
  channel.worker().post([&] {
    task();
    done.set_value();
  });
  done.get_future().wait();
}

Result<void> SshFixture::send(LineChannel& channel, std::string_view line) {
  Result<void> result;
  on_worker(channel, [&] { result = channel.send(line); });
  return result;
}

}  // namespace hive::net::ssh
