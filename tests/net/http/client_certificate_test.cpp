#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/file.h"
#include "net/http/certificate.h"
#include "net/http/client.h"
#include "net/http/server_fixture.h"

namespace hive::net::http::test {
namespace {

struct Identity {
  std::shared_ptr<X509> certificate;
  std::shared_ptr<EVP_PKEY> key;
};

void add_extension(X509* certificate, int nid, const char* value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, nid, value);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

struct Wish {
  std::vector<std::string> common_names = {"ops-console"};
  const char* usage = "clientAuth";  ///< extended key usage; null: none
  int days = 30;                     ///< negative: expired
  bool is_authority = false;
};

/// A certificate signed by `issuer`, or by itself.
Identity issue(const Wish& wish, const Identity* issuer = nullptr) {
  Identity made{std::shared_ptr<X509>(X509_new(), &X509_free),
                std::shared_ptr<EVP_PKEY>(EVP_EC_gen("P-256"), &EVP_PKEY_free)};
  static long serial = 1;
  X509* certificate = made.certificate.get();
  X509_set_version(certificate, X509_VERSION_3);
  ASN1_INTEGER_set(X509_get_serialNumber(certificate), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(certificate), -86400L * 60);
  X509_gmtime_adj(X509_getm_notAfter(certificate), 86400L * wish.days);
  X509_set_pubkey(certificate, made.key.get());
  for (const std::string& name : wish.common_names) {
    X509_NAME_add_entry_by_NID(X509_get_subject_name(certificate), NID_commonName, V_ASN1_UTF8STRING,
                               reinterpret_cast<const unsigned char*>(name.data()), static_cast<int>(name.size()), -1,
                               0);
  }
  const Identity& signer = issuer != nullptr ? *issuer : made;
  X509_set_issuer_name(certificate, X509_get_subject_name(signer.certificate.get()));
  add_extension(certificate, NID_basic_constraints, wish.is_authority ? "critical,CA:TRUE" : "CA:FALSE");
  if (wish.is_authority) {
    add_extension(certificate, NID_key_usage, "critical,keyCertSign,cRLSign");
  } else if (wish.usage != nullptr) {
    add_extension(certificate, NID_ext_key_usage, wish.usage);
  }
  X509_sign(certificate, signer.key.get(), EVP_sha256());
  return made;
}

Identity authority(const std::string& name) {
  return issue({.common_names = {name}, .is_authority = true});
}

class ClientCertificateTest : public ServerTest {
 protected:
  ClientCertificateTest() {
    std::signal(SIGPIPE, SIG_IGN);  // a client here may write to a connection that the server has closed
    char pattern[] = "/tmp/hive-mtls-XXXXXX";
    folder = ::mkdtemp(pattern);
  }
  ~ClientCertificateTest() override { std::filesystem::remove_all(folder); }

  /// A server that answers with the client's common name, or "none".
  void start_tls() {
    write_authorities({&ca});
    auto made = ensure_self_signed_certificate(folder, {});
    ASSERT_TRUE(made) << made.error().message;
    files = *made;
    start({.tls_certificate_path = files.certificate_path,
           .tls_key_path = files.key_path,
           .client_ca_path = folder + "/ca.pem"},
          [](const std::shared_ptr<Request>& request, const std::shared_ptr<Responder>& responder) {
            const auto& shown = request->client_certificate;
            responder->respond({.content_type = "text/plain",
                                .headers = {},
                                .body = shown ? "[" + shown->common_name + "]" + shown->fingerprint : "none"});
          });
  }

  void write_authorities(const std::vector<const Identity*>& authorities) {
    std::ofstream(folder + "/ca.pem", std::ios::trunc).close();
    for (const Identity* each : authorities)
      append_pem(folder + "/ca.pem", each->certificate.get());
  }

  static void append_pem(const std::string& path, X509* certificate) {
    std::FILE* file = std::fopen(path.c_str(), "a");
    PEM_write_X509(file, certificate);
    std::fclose(file);
  }

  /// What the server answers to a new connection that shows this identity; empty: nothing was answered.
  std::string ask(const Identity* shown, const std::vector<const Identity*>& chain = {}) {
    auto response = request(shown, chain);
    return response ? response->body : "";
  }

  Result<ClientResponse> request(const Identity* shown, const std::vector<const Identity*>& chain = {}) {
    ClientRequest request;
    request.url = "https://127.0.0.1:" + std::to_string(server->port()) + "/";
    request.ca_certificate_path = files.certificate_path;
    request.headers = {{"Connection", "close"}};
    if (shown != nullptr) {
      std::string base = folder + "/client-" + std::to_string(++clients);
      append_pem(base + ".pem", shown->certificate.get());
      for (const Identity* each : chain)
        append_pem(base + ".pem", each->certificate.get());
      std::FILE* file = std::fopen((base + ".key").c_str(), "w");
      PEM_write_PrivateKey(file, shown->key.get(), nullptr, nullptr, 0, nullptr, nullptr);
      std::fclose(file);
      request.client_certificate_path = base + ".pem";
      request.client_key_path = base + ".key";
    }
    return perform(request);
  }

  std::string folder;
  CertificateFiles files;
  Identity ca = authority("Test clients");
  int clients = 0;
};

/// One TLS connection by hand.
class TlsClient {
 public:
  TlsClient(std::uint16_t port, const Identity* shown, int version, SSL_SESSION* resume = nullptr)
      : raw_(port), context_(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free) {
    SSL_CTX_set_session_cache_mode(context_.get(), SSL_SESS_CACHE_CLIENT);
    SSL_CTX_set_max_proto_version(context_.get(), version);
    if (shown != nullptr) {
      SSL_CTX_use_certificate(context_.get(), shown->certificate.get());
      SSL_CTX_use_PrivateKey(context_.get(), shown->key.get());
    }
    session_.reset(SSL_new(context_.get()), &SSL_free);
    SSL_set_fd(session_.get(), raw_.fd());
    if (resume != nullptr) SSL_set_session(session_.get(), resume);
    is_connected_ = SSL_connect(session_.get()) == 1;
  }

  [[nodiscard]] bool is_connected() const { return is_connected_; }
  [[nodiscard]] bool was_resumed() const { return SSL_session_reused(session_.get()) == 1; }
  [[nodiscard]] SSL_SESSION* session() const { return SSL_get_session(session_.get()); }

  /// The answer to one request; empty when the connection is over.
  std::string get() {
    std::string_view request = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    SSL_write(session_.get(), request.data(), static_cast<int>(request.size()));
    char buffer[8192];
    int count = SSL_read(session_.get(), buffer, sizeof buffer);
    return count <= 0 ? std::string() : std::string(buffer, static_cast<std::size_t>(count));
  }

 private:
  RawClient raw_;
  std::shared_ptr<SSL_CTX> context_;
  std::shared_ptr<SSL> session_;
  bool is_connected_ = false;
};

TEST_F(ClientCertificateTest, ACertificateOfTheAuthorityIsShownToTheHandler) {
  start_tls();
  Identity client = issue({}, &ca);
  std::string answer = ask(&client);
  EXPECT_TRUE(answer.starts_with("[ops-console]")) << answer;
  EXPECT_EQ(answer.size(), std::string("[ops-console]").size() + 64);
}

TEST_F(ClientCertificateTest, WhoShowsNoneIsServedWithoutOne) {
  start_tls();
  EXPECT_EQ(ask(nullptr), "none");
}

TEST_F(ClientCertificateTest, ABadCertificateIsNotServed) {
  start_tls();
  Identity other = authority("Other clients");
  Identity self_signed = issue({});
  Identity foreign = issue({}, &other);
  Identity expired = issue({.days = -1}, &ca);
  Identity for_servers = issue({.usage = "serverAuth"}, &ca);
  Identity of_client = issue({}, &ca);
  Identity signed_by_client = issue({}, &of_client);
  EXPECT_EQ(ask(&self_signed), "");
  EXPECT_EQ(ask(&foreign), "");
  EXPECT_EQ(ask(&foreign, {&other}), "");
  EXPECT_EQ(ask(&expired), "");
  EXPECT_EQ(ask(&for_servers), "");
  EXPECT_EQ(ask(&signed_by_client, {&of_client}), "");
}

TEST_F(ClientCertificateTest, TheClientLearnsWhyItsCertificateIsRefused) {
  start_tls();
  Identity other = authority("Other clients");
  Identity foreign = issue({}, &other);
  Identity expired = issue({.days = -1}, &ca);
  auto response = request(&foreign);
  ASSERT_FALSE(response);
  EXPECT_NE(response.error().message.find("unknown ca"), std::string::npos) << response.error().message;
  response = request(&expired);
  ASSERT_FALSE(response);
  EXPECT_NE(response.error().message.find("certificate expired"), std::string::npos) << response.error().message;
}

TEST_F(ClientCertificateTest, AnIntermediateAuthorityIsFollowed) {
  start_tls();
  Identity intermediate = issue({.common_names = {"Intermediate"}, .is_authority = true}, &ca);
  Identity client = issue({}, &intermediate);
  EXPECT_EQ(ask(&client), "");
  EXPECT_TRUE(ask(&client, {&intermediate}).starts_with("[ops-console]"));
}

TEST_F(ClientCertificateTest, AnIntermediateAuthorityAloneMayBeTrusted) {
  Identity root = std::exchange(ca, issue({.common_names = {"Intermediate"}, .is_authority = true}, &ca));
  start_tls();
  Identity client = issue({}, &ca);
  Identity of_root = issue({}, &root);
  EXPECT_TRUE(ask(&client).starts_with("[ops-console]"));
  EXPECT_EQ(ask(&of_root), "");
}

TEST_F(ClientCertificateTest, AUsageThatIsNotLimitedIncludesClients) {
  start_tls();
  Identity client = issue({.usage = nullptr}, &ca);
  EXPECT_TRUE(ask(&client).starts_with("[ops-console]"));
}

TEST_F(ClientCertificateTest, ACommonNameThatCouldMeanTwoThingsIsNone) {
  start_tls();
  for (std::vector<std::string> names :
       {std::vector<std::string>{}, {"admin", "guest"}, {std::string("admin\0.evil", 11)}}) {
    Identity client = issue({.common_names = names}, &ca);
    EXPECT_TRUE(ask(&client).starts_with("[]"));
  }
  // OpenSSL does not even read this one.
  Identity broken = issue({.common_names = {"\xff\xfe"}}, &ca);
  EXPECT_EQ(ask(&broken), "");
  Identity client = issue({.common_names = {"Jürgen"}}, &ca);
  EXPECT_TRUE(ask(&client).starts_with("[Jürgen]"));
}

TEST_F(ClientCertificateTest, NoSessionIsResumed) {
  start_tls();
  Identity client = issue({}, &ca);
  for (int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    TlsClient first(server->port(), &client, version);
    EXPECT_NE(first.get().find("[ops-console]"), std::string::npos);
    TlsClient second(server->port(), nullptr, version, first.session());
    EXPECT_FALSE(second.was_resumed());
    EXPECT_NE(second.get().find("none"), std::string::npos);
  }
}

TEST_F(ClientCertificateTest, AReloadChangesTheAuthorities) {
  start_tls();
  Identity next = authority("Next clients");
  Identity old_client = issue({}, &ca);
  Identity new_client = issue({}, &next);
  EXPECT_EQ(ask(&new_client), "");
  write_authorities({&next});
  ASSERT_TRUE(server->reload_certificate());
  EXPECT_TRUE(ask(&new_client).starts_with("[ops-console]"));
  EXPECT_EQ(ask(&old_client), "");
}

TEST_F(ClientCertificateTest, AConnectionFromBeforeAReloadIsNotServedAnyMore) {
  start_tls();
  Identity client = issue({}, &ca);
  TlsClient certified(server->port(), &client, TLS1_3_VERSION);
  TlsClient anonymous(server->port(), nullptr, TLS1_3_VERSION);
  EXPECT_NE(certified.get().find("[ops-console]"), std::string::npos);
  EXPECT_NE(anonymous.get().find("none"), std::string::npos);
  Identity next = authority("Next clients");
  write_authorities({&next});
  ASSERT_TRUE(server->reload_certificate());
  EXPECT_EQ(certified.get().find("[ops-console]"), std::string::npos);
  EXPECT_EQ(certified.get(), "");
  EXPECT_NE(anonymous.get().find("none"), std::string::npos);
}

TEST_F(ClientCertificateTest, AuthoritiesThatAreNoneStopTheStartAndAReload) {
  start_tls();
  auto problem = [&](const std::string& path) {
    auto made = Server::listen(runtime,
                               {.listen_address = "127.0.0.1:0",
                                .tls_certificate_path = files.certificate_path,
                                .tls_key_path = files.key_path,
                                .client_ca_path = path},
                               echo);
    return made ? std::string() : made.error().message;
  };
  std::string path = folder + "/other.pem";
  EXPECT_NE(problem(path).find(path), std::string::npos);
  ASSERT_TRUE(write_file_atomically(path, "nothing", 0644));
  EXPECT_NE(problem(path).find("no PEM certificate"), std::string::npos);
  ASSERT_TRUE(write_file_atomically(path, "", 0644));
  append_pem(path, issue({}, &ca).certificate.get());
  EXPECT_NE(problem(path).find("not the certificate of an authority"), std::string::npos);
  ASSERT_TRUE(write_file_atomically(path, "", 0644));
  append_pem(path, ca.certificate.get());
  std::string good = read_file(path, 1 << 20).value_or("");
  ASSERT_TRUE(write_file_atomically(path, good + good.substr(0, good.size() / 2), 0644));
  EXPECT_NE(problem(path).find("broken certificate"), std::string::npos) << problem(path);
  ASSERT_TRUE(write_file_atomically(path, good, 0644));
  EXPECT_EQ(problem(path), "");
  ASSERT_TRUE(write_file_atomically(folder + "/ca.pem", "nothing", 0644));
  EXPECT_FALSE(server->reload_certificate());
  Identity client = issue({}, &ca);
  EXPECT_TRUE(ask(&client).starts_with("[ops-console]"));
  EXPECT_FALSE(Server::listen(runtime, {.listen_address = "127.0.0.1:0", .client_ca_path = path}, echo));
}

TEST_F(ClientCertificateTest, TheClientSaysWhichOfItsFilesIsUnusable) {
  start_tls();
  ClientRequest request;
  request.url = "https://127.0.0.1:" + std::to_string(server->port()) + "/";
  request.ca_certificate_path = files.certificate_path;
  request.client_certificate_path = folder + "/none.pem";
  request.client_key_path = folder + "/none.key";
  auto response = perform(request);
  ASSERT_FALSE(response);
  EXPECT_EQ(response.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(response.error().message.find(folder + "/none.pem"), std::string::npos) << response.error().message;
}

}  // namespace
}  // namespace hive::net::http::test
