// X-Forwarded-For of anybody: the answer is always the peer or one address of the header that is no proxy of ours, in
// its one spelling, and what stands in front of it changes nothing.
#include <array>
#include <memory>
#include <string>

#include <arpa/inet.h>

#include "fuzz_target.h"
#include "gateway/policy/authenticator.h"

namespace {

using namespace hive;

std::shared_ptr<const policy::Authenticator> make_authenticator() {
  config::GatewayConfig config;
  config.trusted_proxy_addresses = {"10.0.0.0/8", "192.0.2.1", "2001:db8::/32"};
  auto made = policy::Authenticator::create(config, system_clock());
  CHECK(made.has_value());
  return *made;
}

bool is_canonical(const std::string& address) {
  std::array<unsigned char, 16> bytes{};
  std::array<char, INET6_ADDRSTRLEN> text{};
  for (int family : {AF_INET, AF_INET6}) {
    if (::inet_pton(family, address.c_str(), bytes.data()) != 1) continue;
    bool is_mapped = address.starts_with("::ffff:") && address.contains('.');
    return !is_mapped && address == ::inet_ntop(family, bytes.data(), text.data(), text.size());
  }
  return false;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::shared_ptr<const policy::Authenticator> authenticator = make_authenticator();
  std::string_view header = fuzz::as_text(data, size);
  CHECK(policy::client_address("198.51.100.7", header, *authenticator) == "198.51.100.7");
  const std::string proxy = "10.0.0.1";
  std::string found = policy::client_address(proxy, header, *authenticator);
  if (found == proxy) return 0;
  CHECK(is_canonical(found));
  CHECK(!authenticator->is_trusted_proxy(found));
  std::string longer = "203.0.113.9, not an address," + std::string(header);
  CHECK(policy::client_address(proxy, longer, *authenticator) == found);
  return 0;
}
