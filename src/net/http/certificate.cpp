#include "net/http/certificate.h"

#include <algorithm>
#include <ctime>
#include <memory>
#include <optional>
#include <set>

#include <arpa/inet.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "net/http/tls_context.h"

namespace hive::net::http {

namespace {

constexpr size_t max_pem_bytes = size_t{1} << 20;
// With the leeway below, still under the 825 days that some clients accept at most.
constexpr auto validity = std::chrono::days(824);
constexpr auto renewal_margin = std::chrono::days(30);
constexpr auto clock_leeway = std::chrono::hours(1);

template <auto Function>
struct Deleter {
  template <class T>
  void operator()(T* pointer) const {
    Function(pointer);
  }
};
using Bio = std::unique_ptr<BIO, Deleter<BIO_free>>;
using Certificate = std::unique_ptr<X509, Deleter<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, Deleter<EVP_PKEY_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, Deleter<X509_EXTENSION_free>>;
using Names = std::unique_ptr<GENERAL_NAMES, Deleter<GENERAL_NAMES_free>>;
using Number = std::unique_ptr<BIGNUM, Deleter<BN_free>>;

/// An address in the form in which two spellings of it are equal; nullopt if it is none.
std::optional<std::string> canonical_address(const std::string& text) {
  unsigned char bytes[sizeof(in6_addr)];
  char canonical[INET6_ADDRSTRLEN];
  for (int family : {AF_INET, AF_INET6}) {
    if (::inet_pton(family, text.c_str(), bytes) != 1) continue;
    return ::inet_ntop(family, bytes, canonical, sizeof canonical);
  }
  return std::nullopt;
}

bool is_dns_name(std::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  std::vector<std::string_view> labels = split(name, '.');
  return std::ranges::all_of(labels, [](std::string_view label) {
    return !label.empty() && label.size() <= 63 && std::ranges::all_of(label, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
    });
  });
}

Result<std::set<std::string>> wanted_names(std::span<const std::string> given) {
  std::set<std::string> wanted = {"localhost", "127.0.0.1", "::1"};
  char host[256] = {};
  if (::gethostname(host, sizeof host - 1) == 0 && is_dns_name(host)) wanted.insert(host);
  for (const std::string& name : given) {
    if (auto address = canonical_address(name)) {
      wanted.insert(*address);
    } else if (is_dns_name(name)) {
      wanted.insert(name);
    } else {
      return fail(ErrorCode::invalid_argument, "certificate: {} is neither a DNS name nor an IP address", quote(name));
    }
  }
  return wanted;
}

std::vector<std::string> names_in(const X509* certificate) {
  std::vector<std::string> found;
  Names names(static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    int type = 0;
    const auto* value = static_cast<const ASN1_STRING*>(GENERAL_NAME_get0_value(name, &type));
    const unsigned char* data = ASN1_STRING_get0_data(value);
    int size = ASN1_STRING_length(value);
    if (type == GEN_DNS) {
      found.emplace_back(reinterpret_cast<const char*>(data), static_cast<size_t>(size));
    } else if (type == GEN_IPADD && (size == 4 || size == 16)) {
      char text[INET6_ADDRSTRLEN];
      found.emplace_back(::inet_ntop(size == 4 ? AF_INET : AF_INET6, data, text, sizeof text));
    }
  }
  return found;
}

Result<Certificate> read_certificate(const std::string& path) {
  std::string pem = TRY(read_file(path, max_pem_bytes));
  Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  Certificate certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
  if (!certificate) return fail(ErrorCode::corrupt, "{}: no PEM certificate in it ({})", path, take_tls_error());
  return certificate;
}

Result<Key> read_key(const std::string& path) {
  std::string pem = TRY(read_file(path, max_pem_bytes, FileSecrecy::owner_only));
  Bio bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
  auto no_passphrase = [](char*, int, int, void*) { return -1; };
  Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, no_passphrase, nullptr));
  OPENSSL_cleanse(pem.data(), pem.size());
  if (!key) return fail(ErrorCode::corrupt, "{}: no unencrypted PEM private key in it ({})", path, take_tls_error());
  return key;
}

/// Why the files cannot be used any longer; empty if they can. A loose mode of the key is an error: it must not be
/// mended in silence.
Result<std::string> reason_to_renew(const CertificateFiles& files, const std::set<std::string>& wanted, WallTime now) {
  if (::access(files.certificate_path.c_str(), F_OK) != 0 || ::access(files.key_path.c_str(), F_OK) != 0) {
    return "there is none yet";
  }
  Result<Key> key = read_key(files.key_path);
  if (!key && key.error().code != ErrorCode::corrupt) return std::unexpected(key.error());
  Result<Certificate> certificate = read_certificate(files.certificate_path);
  if (!certificate && certificate.error().code != ErrorCode::corrupt) return std::unexpected(certificate.error());
  if (!key || !certificate) return "the files of the old one are damaged";
  if (X509_check_private_key(certificate->get(), key->get()) != 1) {
    ERR_clear_error();
    return "the files of the old one do not belong together";
  }
  std::time_t limit = std::chrono::system_clock::to_time_t(now + renewal_margin);
  if (X509_cmp_time(X509_get0_notAfter(certificate->get()), &limit) <= 0) return "the old one expires soon";
  std::time_t begin = std::chrono::system_clock::to_time_t(now);
  if (X509_cmp_time(X509_get0_notBefore(certificate->get()), &begin) > 0) return "the old one is not valid yet";
  std::vector<std::string> names = names_in(certificate->get());
  if (std::set<std::string>(names.begin(), names.end()) != wanted) return "the wanted names have changed";
  return "";
}

bool add_extension(X509* certificate, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, certificate, certificate, nullptr, nullptr, 0);
  Extension extension(X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str()));
  return extension && X509_add_ext(certificate, extension.get(), -1) == 1;
}

bool set_random_serial(X509* certificate) {
  Number number(BN_new());
  return number && BN_rand(number.get(), 127, BN_RAND_TOP_ANY, BN_RAND_BOTTOM_ANY) == 1 &&
         BN_to_ASN1_INTEGER(number.get(), X509_get_serialNumber(certificate)) != nullptr;
}

bool set_subject(X509* certificate) {
  X509_NAME* subject = X509_get_subject_name(certificate);
  auto add = [&](const char* field, const char* value) {
    return X509_NAME_add_entry_by_txt(subject, field, MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(value), -1,
                                      -1, 0) == 1;
  };
  return add("O", "Myrmex Hive") && add("CN", "Myrmex Hive gateway") && X509_set_issuer_name(certificate, subject) == 1;
}

Result<Certificate> make_certificate(EVP_PKEY* key, const std::set<std::string>& names, WallTime now) {
  std::string alternatives;
  for (const std::string& name : names) {
    alternatives += alternatives.empty() ? "" : ",";
    alternatives += (canonical_address(name) ? "IP:" : "DNS:") + name;
  }
  Certificate certificate(X509_new());
  std::time_t begin = std::chrono::system_clock::to_time_t(now - clock_leeway);
  std::time_t end = std::chrono::system_clock::to_time_t(now + validity);
  // Without keyUsage: a key usage that does not include signing certificates would make some readers refuse the
  // certificate as its own trust anchor.
  bool made = certificate && X509_set_version(certificate.get(), X509_VERSION_3) == 1 &&
              set_random_serial(certificate.get()) && set_subject(certificate.get()) &&
              ASN1_TIME_set(X509_getm_notBefore(certificate.get()), begin) != nullptr &&
              ASN1_TIME_set(X509_getm_notAfter(certificate.get()), end) != nullptr &&
              X509_set_pubkey(certificate.get(), key) == 1 &&
              add_extension(certificate.get(), NID_basic_constraints, "critical,CA:FALSE") &&
              add_extension(certificate.get(), NID_ext_key_usage, "serverAuth") &&
              add_extension(certificate.get(), NID_subject_alt_name, alternatives) &&
              add_extension(certificate.get(), NID_subject_key_identifier, "hash") &&
              add_extension(certificate.get(), NID_authority_key_identifier, "keyid:always") &&
              X509_sign(certificate.get(), key, EVP_sha256()) > 0;
  if (!made) return fail(ErrorCode::internal, "cannot make a certificate: {}", take_tls_error());
  return certificate;
}

Result<std::string> pem_text(Bio bio, bool written) {
  char* data = nullptr;
  long size = bio ? BIO_get_mem_data(bio.get(), &data) : 0;
  if (!written || size <= 0) return fail(ErrorCode::internal, "cannot write PEM: {}", take_tls_error());
  std::string text(data, static_cast<size_t>(size));
  OPENSSL_cleanse(data, static_cast<size_t>(size));
  return text;
}

}  // namespace

Result<CertificateFiles> ensure_self_signed_certificate(const std::string& folder, std::span<const std::string> names,
                                                        const Clock& clock) {
  CertificateFiles files{folder + "/tls_cert.pem", folder + "/tls_key.pem"};
  std::set<std::string> wanted = TRY(wanted_names(names));
  std::string reason = TRY(reason_to_renew(files, wanted, clock.wall_now()));
  if (reason.empty()) return files;

  Key key(EVP_EC_gen("P-256"));
  if (!key) return fail(ErrorCode::internal, "cannot make a TLS key: {}", take_tls_error());
  Certificate certificate = TRY(make_certificate(key.get(), wanted, clock.wall_now()));
  Bio key_bio(BIO_new(BIO_s_mem()));
  bool key_written =
      key_bio && PEM_write_bio_PKCS8PrivateKey(key_bio.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr) == 1;
  std::string key_pem = TRY(pem_text(std::move(key_bio), key_written));
  Bio certificate_bio(BIO_new(BIO_s_mem()));
  bool certificate_written = certificate_bio && PEM_write_bio_X509(certificate_bio.get(), certificate.get()) == 1;
  std::string certificate_pem = TRY(pem_text(std::move(certificate_bio), certificate_written));

  // After a crash between the two the files do not belong together, which the next start notices.
  Result<void> stored = write_file_atomically(files.key_path, key_pem, 0600);
  OPENSSL_cleanse(key_pem.data(), key_pem.size());
  if (!stored) return std::unexpected(stored.error());
  TRY(write_file_atomically(files.certificate_path, certificate_pem, 0644));
  log::info("made a self-signed certificate", {{"file", files.certificate_path}, {"because", reason}});
  return files;
}

Result<std::vector<std::string>> certificate_names(const std::string& certificate_path) {
  Certificate certificate = TRY(read_certificate(certificate_path));
  return names_in(certificate.get());
}

}  // namespace hive::net::http
