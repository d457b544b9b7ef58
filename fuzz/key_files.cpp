// The key files that people write by hand: authorized_keys, known_hosts, OpenSSH private keys.
#include "crypto/known_hosts.h"
#include "crypto/ssh_key.h"
#include "fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hive;
  std::string_view text = fuzz::as_text(data, size);
  for (const crypto::AuthorizedKey& entry : crypto::parse_authorized_keys(text).keys) {
    CHECK(entry.key.is_ed25519());
    Result<crypto::PublicKey> again = crypto::PublicKey::from_line(entry.key.to_line());
    CHECK(again.has_value());
    CHECK(*again == entry.key);
    (void)crypto::address_matches(entry.from_patterns, "10.1.2.3");
    (void)crypto::address_matches(entry.from_patterns, "::ffff:10.1.2.3");
  }
  (void)crypto::lookup_known_host(text, "gw.example", 2222);
  (void)crypto::PublicKey::from_line(text);
  Result<crypto::PrivateKey> key = crypto::PrivateKey::from_openssh(text);
  if (key) {
    Result<crypto::PrivateKey> again = crypto::PrivateKey::from_openssh(key->to_openssh());
    CHECK(again.has_value());
    CHECK(again->public_key() == key->public_key());
  }
  return 0;
}
