#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include <sys/stat.h>

#include "base/file.h"
#include "base/strings.h"
#include "net/http/certificate.h"
#include "net/http/client.h"
#include "net/http/server_fixture.h"

namespace hive::net::http::test {
namespace {

class TlsTest : public ServerTest {
 protected:
  TlsTest() {
    char pattern[] = "/tmp/hive-tls-XXXXXX";
    folder = ::mkdtemp(pattern);
  }
  ~TlsTest() override { std::filesystem::remove_all(folder); }

  CertificateFiles ensure(std::vector<std::string> names = {}) {
    auto files = ensure_self_signed_certificate(folder, names, clock);
    EXPECT_TRUE(files) << files.error().message;
    return *files;
  }

  void start_tls(ServerOptions options = {}) {
    files = ensure();
    options.tls_certificate_path = files.certificate_path;
    options.tls_key_path = files.key_path;
    start(std::move(options));
  }

  Result<ClientResponse> get(const std::string& host, const std::string& path = "/x") {
    ClientRequest request;
    request.url = "https://" + host + ":" + std::to_string(server->port()) + path;
    request.ca_certificate_path = files.certificate_path;
    request.timeout = std::chrono::seconds(10);
    return perform(request);
  }

  /// What a command prints, without its exit code.
  static std::string output_of(const std::string& command) {
    std::string text;
    FILE* pipe = ::popen((command + " 2>&1 </dev/null").c_str(), "r");
    char bytes[4096];
    while (std::size_t count = std::fread(bytes, 1, sizeof bytes, pipe))
      text.append(bytes, count);
    ::pclose(pipe);
    return text;
  }
  std::string s_client(const std::string& options) {
    return output_of("timeout 10 openssl s_client -connect 127.0.0.1:" + std::to_string(server->port()) + " " +
                     options);
  }

  std::string folder;
  CertificateFiles files;
  ManualClock clock;
};

std::string content(const std::string& path) {
  return read_file(path, 1 << 20).value_or("");
}

TEST_F(TlsTest, AClientThatTrustsTheCertificateIsServed) {
  clock.step_wall(std::chrono::system_clock::now() - clock.wall_now());
  start_tls();
  for (const char* host : {"127.0.0.1", "localhost"}) {
    auto response = get(host);
    ASSERT_TRUE(response) << host << ": " << response.error().message;
    EXPECT_EQ(response->body, "GET /x ");
  }
}

TEST_F(TlsTest, CurlAcceptsTheCertificateAsItsOwnAnchor) {
  clock.step_wall(std::chrono::system_clock::now() - clock.wall_now());
  start_tls();
  EXPECT_EQ(output_of("curl --silent --show-error --noproxy '*' --cacert " + files.certificate_path +
                      " https://127.0.0.1:" + std::to_string(server->port()) + "/curl"),
            "GET /curl ");
}

TEST_F(TlsTest, LargeBodiesAndManyRequestsPassOverOneConnection) {
  clock.step_wall(std::chrono::system_clock::now() - clock.wall_now());
  std::string large(4 << 20, 'y');
  files = ensure();
  start({.tls_certificate_path = files.certificate_path, .tls_key_path = files.key_path, .max_body_bytes = 8 << 20},
        [&](auto request, auto responder) {
          responder->respond({.body = request->path == "/large" ? large : std::to_string(request->body.size())});
        });
  auto response = get("127.0.0.1", "/large");
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, large);
  ClientRequest upload;
  upload.method = "POST";
  upload.url = "https://127.0.0.1:" + std::to_string(server->port()) + "/";
  upload.ca_certificate_path = files.certificate_path;
  upload.body = large;
  response = perform(upload);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->body, std::to_string(large.size()));
}

TEST_F(TlsTest, OldVersionsAndWeakSuitesAreRefused) {
  start_tls();
  EXPECT_NE(s_client("-tls1_3").find("Cipher is TLS_"), std::string::npos);
  EXPECT_NE(s_client("-tls1_2").find("Cipher is ECDHE-ECDSA-"), std::string::npos);
  EXPECT_NE(s_client("-tls1_1 -cipher ALL:@SECLEVEL=0").find("Cipher is (NONE)"), std::string::npos);
  EXPECT_NE(s_client("-tls1_2 -cipher ECDHE-ECDSA-AES128-SHA256:@SECLEVEL=0").find("Cipher is (NONE)"),
            std::string::npos);
}

TEST_F(TlsTest, AlpnChoosesHttp11AndRefusesAnythingElse) {
  start_tls();
  EXPECT_NE(s_client("-alpn h2,http/1.1").find("ALPN protocol: http/1.1"), std::string::npos);
  EXPECT_NE(s_client("-alpn h2").find("no application protocol"), std::string::npos);
}

TEST_F(TlsTest, PlainHttpOnTheTlsPortIsToldSo) {
  start_tls();
  std::string response = exchange("GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  EXPECT_EQ(status_of(response), 400u);
  EXPECT_NE(body_of(response).find("https://"), std::string_view::npos);
}

TEST_F(TlsTest, AHandshakeThatDoesNotEndIsClosed) {
  start_tls({.header_timeout = std::chrono::milliseconds(100)});
  RawClient client(server->port());
  client.send("\x16\x03\x01");
  EXPECT_EQ(client.read_all(), "");
}

TEST_F(TlsTest, NoiseInsteadOfAHandshakeIsClosed) {
  start_tls();
  RawClient client(server->port());
  client.send(std::string(1000, '\xee'));
  client.read_all();
  EXPECT_TRUE(eventually([&] { return server->open_connections() == 0; }));
}

TEST_F(TlsTest, AReloadServesTheNewCertificateAndKeepsTheOldOneOnFailure) {
  clock.step_wall(std::chrono::system_clock::now() - clock.wall_now());
  start_tls();
  std::string old = content(files.certificate_path);
  ensure({"gw.example"});
  EXPECT_NE(content(files.certificate_path), old);
  EXPECT_FALSE(get("127.0.0.1"));  // the client trusts the new one only
  ASSERT_TRUE(server->reload_certificate());
  EXPECT_TRUE(get("127.0.0.1"));
  ASSERT_TRUE(write_file_atomically(files.key_path, "no key", 0600));
  auto failed = server->reload_certificate();
  ASSERT_FALSE(failed);
  EXPECT_NE(failed.error().message.find(files.key_path), std::string::npos);
  EXPECT_TRUE(get("127.0.0.1"));
}

TEST_F(TlsTest, HalfAPairAndForeignOrLooseKeysStopTheStart) {
  CertificateFiles pair = ensure();
  auto listen = [&](const std::string& certificate, const std::string& key) {
    auto made = Server::listen(
        runtime, {.listen_address = "127.0.0.1:0", .tls_certificate_path = certificate, .tls_key_path = key}, echo);
    return made ? std::string() : made.error().message;
  };
  EXPECT_EQ(listen(pair.certificate_path, pair.key_path), "");
  EXPECT_NE(listen(pair.certificate_path, "").find("only " + pair.certificate_path), std::string::npos);
  EXPECT_NE(listen("", pair.key_path).find("only " + pair.key_path), std::string::npos);
  EXPECT_NE(listen(folder + "/none", pair.key_path).find(folder + "/none"), std::string::npos);
  EXPECT_NE(listen(pair.key_path, pair.key_path).find("no PEM certificate"), std::string::npos);
  ::chmod(pair.key_path.c_str(), 0644);
  EXPECT_NE(listen(pair.certificate_path, pair.key_path).find("chmod 600"), std::string::npos);
  output_of("openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out " + folder + "/other.pem");
  EXPECT_NE(listen(pair.certificate_path, folder + "/other.pem").find("does not belong to"), std::string::npos);
  output_of("openssl genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -aes256 -pass pass:x -out " + folder +
            "/locked.pem");
  EXPECT_NE(listen(pair.certificate_path, folder + "/locked.pem").find("unencrypted"), std::string::npos);
}

TEST_F(TlsTest, TheCertificateNamesTheMachineAndWhatWasAskedFor) {
  ensure({"gw.example", "192.0.2.9", "2001:DB8::0:9"});
  auto names = certificate_names(folder + "/tls_cert.pem");
  ASSERT_TRUE(names);
  for (const char* name : {"localhost", "127.0.0.1", "::1", "gw.example", "192.0.2.9", "2001:db8::9"})
    EXPECT_NE(std::ranges::find(*names, name), names->end()) << name;
}

TEST_F(TlsTest, ANameThatIsNoneIsRefused) {
  for (const char* name : {"", "a b", "a,DNS:evil.example", "*.example", "a..b"}) {
    std::vector<std::string> names = {name};
    auto made = ensure_self_signed_certificate(folder, names, clock);
    ASSERT_FALSE(made) << name;
    EXPECT_NE(made.error().message.find(quote(name)), std::string::npos);
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST_F(TlsTest, TheKeyIsItsOwnersAlone) {
  CertificateFiles pair = ensure();
  struct stat status{};
  ASSERT_EQ(::stat(pair.key_path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
  ::chmod(pair.key_path.c_str(), 0640);
  auto again = ensure_self_signed_certificate(folder, {}, clock);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().message.find("chmod 600"), std::string::npos);
}

TEST_F(TlsTest, AGoodPairIsKept) {
  CertificateFiles pair = ensure({"gw.example"});
  std::string old = content(pair.certificate_path) + content(pair.key_path);
  clock.advance(std::chrono::days(790));
  ensure({"gw.example"});
  EXPECT_EQ(content(pair.certificate_path) + content(pair.key_path), old);
}

TEST_F(TlsTest, AnOldAWrongOrADamagedPairIsMadeAnew) {
  CertificateFiles pair = ensure();
  std::string certificate = content(pair.certificate_path);
  auto expect_new = [&](const char* why) {
    std::string now = content(ensure().certificate_path);
    EXPECT_NE(now, certificate) << why;
    certificate = now;
  };
  clock.advance(std::chrono::days(800));
  expect_new("it expires in less than thirty days");
  clock.step_wall(-std::chrono::days(700));
  expect_new("it is not valid yet");
  ASSERT_TRUE(write_file_atomically(pair.certificate_path, "-----BEGIN CERT", 0644));
  expect_new("the certificate is damaged");
  std::filesystem::remove(pair.key_path);
  expect_new("the key is gone");
  // As after a crash between the two files.
  std::string old_certificate = certificate;
  std::filesystem::remove(pair.certificate_path);
  expect_new("the certificate is gone");
  ASSERT_TRUE(write_file_atomically(pair.certificate_path, old_certificate, 0644));
  expect_new("the files do not belong together");
}

}  // namespace
}  // namespace hive::net::http::test
