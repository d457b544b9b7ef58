#pragma once

#include <chrono>
#include <cstddef>
#include <expected>
#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "config/gateway_config.h"
#include "gateway/oidc/discovery.h"
#include "gateway/oidc/fault.h"
#include "net/runtime/runtime.h"

namespace hive::oidc {

struct ProviderOptions {
  std::string issuer;
  std::string audience;
  std::string role_claim;
  std::string ca_certificate_path;  ///< empty: the system's store
  /// After a fetch that an unknown key has caused, this long and up to half as long again none causes another.
  std::chrono::seconds cool_down{30};
  std::chrono::seconds refresh_after{3600};  ///< keys of this age are fetched again beside the work
  std::chrono::seconds stale_after{7200};    ///< keys of this age are fetched again before one is believed
  std::size_t max_waiting = 1024;            ///< tokens that wait for a fetch
  std::size_t max_remembered = 4096;         ///< tokens whose signature need not be verified again

  bool operator==(const ProviderOptions&) const = default;
};

/// An OpenID Connect issuer whose tokens are accepted. Thread-safe.
///
/// Its keys are fetched on the blocking pool, one fetch at a time, when a token needs them: at first, when a token
/// names a key that is not known, and when they have grown old. When the issuer cannot be reached, the keys that are
/// there stay in force, and the next attempt waits, longer each time up to the cool-down.
class Provider {
 public:
  using Verified = std::expected<policy::IdentityClaims, OidcFault>;
  using Done = std::move_only_function<void(Verified)>;

  static std::shared_ptr<Provider> create(net::Runtime& runtime, const Clock& clock, ProviderOptions options);
  static std::shared_ptr<Provider> create(net::Runtime& runtime, const Clock& clock, ProviderOptions options,
                                          Fetch fetch);
  virtual ~Provider() = default;

  /// Verifies signature, issuer, audience and times. `done` is called once: at once where the keys are there, otherwise
  /// on `worker`, which must be the calling one.
  virtual void verify(net::Worker& worker, std::string token, Done done) = 0;

  /// Gets the keys before the first token needs them.
  virtual void prepare() = 0;

  /// Gives up a running fetch and begins no other: a stopping gateway does not wait for its issuer.
  virtual void stop() = 0;

  [[nodiscard]] virtual const ProviderOptions& options() const = 0;
};

/// The provider that a configuration asks for: `previous` where it would be the same, null without oidc_issuer.
std::shared_ptr<Provider> provider_of(const config::GatewayConfig& config, net::Runtime& runtime, const Clock& clock,
                                      const std::shared_ptr<Provider>& previous = nullptr);

}  // namespace hive::oidc
