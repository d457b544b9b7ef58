#include "gateway/oidc/provider.h"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include <sys/eventfd.h>
#include <unistd.h>

#include "base/log.h"
#include "base/unique_fd.h"
#include "crypto/random.h"
#include "gateway/oidc/claims.h"
#include "gateway/oidc/remembered_tokens.h"

namespace hive::oidc {

namespace {

using policy::CredentialFault;

/// Between `time` and half as long again: gateways that started together do not ask together.
std::chrono::milliseconds with_jitter(std::chrono::milliseconds time) {
  std::uint16_t random = 0;
  crypto::random_bytes({reinterpret_cast<std::uint8_t*>(&random), sizeof random});
  return time + time * random / (2 * 65536);
}

Provider::Verified refuse(CredentialFault fault, std::string detail) {
  return std::unexpected(OidcFault{fault, std::move(detail)});
}

class CachingProvider final : public Provider, public std::enable_shared_from_this<CachingProvider> {
 public:
  CachingProvider(net::Runtime& runtime, const Clock& clock, ProviderOptions options, Fetch fetch)
      : runtime_(runtime),
        clock_(clock),
        options_(std::move(options)),
        rules_{options_.issuer, options_.audience, options_.role_claim},
        fetch_(std::move(fetch)),
        cancel_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        remembered_(options_.max_remembered) {}

  const ProviderOptions& options() const override { return options_; }

  void prepare() override {
    std::unique_lock lock(mutex_);
    if (!keys_) begin_fetch(lock, Cause::age);
  }

  void stop() override {
    std::lock_guard lock(mutex_);
    stopped_ = true;
    std::uint64_t one = 1;
    // Fails only when the counter is full, and then the descriptor is readable already.
    static_cast<void>(::write(cancel_.get(), &one, sizeof one) == sizeof one);
  }

  void verify(net::Worker& worker, std::string token, Done done) override {
    crypto::Digest digest = remembered_.key_of(token);
    if (auto claims = find_remembered(digest)) return done(holds_now(*claims));
    std::expected<Jwt, OidcFault> jwt = parse_jwt(token);
    if (!jwt) return done(std::unexpected(std::move(jwt.error())));
    Waiting waiting{&worker, *std::move(jwt), digest, std::move(done)};

    std::unique_lock lock(mutex_);
    std::shared_ptr<const KeySet> keys = keys_;
    bool is_stale = !keys || clock_.steady_now() - fetched_at_ >= options_.stale_after;
    if (is_stale && wait_for_keys(lock, waiting, Cause::age)) return;
    if (keys && clock_.steady_now() - fetched_at_ >= options_.refresh_after) begin_fetch(lock, Cause::age);
    lock.unlock();

    KeySet::Verdict verdict = keys ? keys->verify(waiting.token) : KeySet::Verdict::unknown_key;
    if (keys && verdict == KeySet::Verdict::unknown_key) {
      lock.lock();
      if (wait_for_keys(lock, waiting, Cause::unknown_key)) return;
      lock.unlock();
    }
    waiting.done(judge(waiting, keys, verdict));
  }

 private:
  /// Why keys are fetched. Anybody can invent a key id, nobody can make keys old.
  enum class Cause { age, unknown_key };

  struct Waiting {
    net::Worker* worker;
    Jwt token;
    crypto::Digest digest;
    Done done;
  };

  std::shared_ptr<const CheckedClaims> find_remembered(const crypto::Digest& digest) {
    std::unique_lock lock(mutex_);
    SteadyTime now = clock_.steady_now();
    if (!keys_ || now - fetched_at_ >= options_.stale_after) return nullptr;
    if (now - fetched_at_ >= options_.refresh_after) begin_fetch(lock, Cause::age);
    return remembered_.find(digest);
  }

  /// Lets a token wait for the fetch that runs or begins now. False when none may begin, and it must be judged by what
  /// is there.
  bool wait_for_keys(std::unique_lock<std::mutex>& lock, Waiting& waiting, Cause cause) {
    if (waiting_.size() >= options_.max_waiting) return false;
    begin_fetch(lock, cause);
    if (!fetching_) return false;
    waiting_.push_back(std::move(waiting));
    return true;
  }

  /// Unless a fetch runs, or the last one is too recent.
  void begin_fetch(const std::unique_lock<std::mutex>& /*held*/, Cause cause) {
    if (fetching_ || stopped_ || clock_.steady_now() < next_fetch_) return;
    fetching_ = true;
    runtime_.run_blocking([self = shared_from_this(), cause] {
      self->end_fetch(fetch_keys(self->options_.issuer, self->fetch_, self->cancel_.get()), cause);
    });
  }

  void end_fetch(Result<std::shared_ptr<const KeySet>> fetched, Cause cause) {
    std::vector<Waiting> waiting;
    std::shared_ptr<const KeySet> keys;
    bool stopped = false;
    {
      std::lock_guard lock(mutex_);
      SteadyTime now = clock_.steady_now();
      if (fetched) {
        keys_ = *fetched;
        fetched_at_ = now;
        failures_ = 0;
        remembered_.clear();
      } else {
        failures_ = std::min(failures_ + 1, 10U);
      }
      std::chrono::milliseconds pause{0};
      if (failures_ > 0) {
        pause = std::min<std::chrono::milliseconds>(options_.cool_down, std::chrono::seconds(1U << (failures_ - 1)));
      } else if (cause == Cause::unknown_key) {
        pause = options_.cool_down;
      }
      next_fetch_ = now + with_jitter(pause);
      fetching_ = false;
      stopped = stopped_;
      keys = keys_;
      waiting = std::exchange(waiting_, {});
      last_failure_ = fetched ? "" : fetched.error().message;
    }
    if (!stopped) log_fetch(fetched, keys != nullptr);
    for (Waiting& each : waiting) {
      net::Worker& worker = *each.worker;
      worker.post([self = shared_from_this(), keys, each = std::move(each)]() mutable {
        each.done(self->judge(each, keys, keys ? keys->verify(each.token) : KeySet::Verdict::unknown_key));
      });
    }
  }

  void log_fetch(const Result<std::shared_ptr<const KeySet>>& fetched, bool has_keys) const {
    if (!fetched) {
      log::warning("the identity provider's keys cannot be fetched",
                   {{"issuer", options_.issuer},
                    {"reason", fetched.error().message},
                    {"consequence", has_keys ? "the known keys stay in force" : "its tokens are refused"}});
      return;
    }
    log::debug("the identity provider's keys are fetched", {{"issuer", options_.issuer}, {"keys", (*fetched)->size()}});
    for (const std::string& reason : (*fetched)->skipped())
      log::debug("a key of the identity provider is not used", {{"issuer", options_.issuer}, {"reason", reason}});
  }

  /// The last word on a token.
  Verified judge(const Waiting& waiting, const std::shared_ptr<const KeySet>& keys, KeySet::Verdict verdict) {
    if (!keys) {
      std::lock_guard lock(mutex_);
      return refuse(CredentialFault::provider_unavailable,
                    last_failure_.empty() ? "the issuer's keys are not there, and too many tokens wait for them"
                                          : "the issuer's keys cannot be fetched: " + last_failure_);
    }
    switch (verdict) {
      case KeySet::Verdict::good:
        break;
      case KeySet::Verdict::bad_signature:
        return refuse(CredentialFault::bad_signature, "the signature is wrong");
      case KeySet::Verdict::wrong_algorithm:
        return refuse(CredentialFault::bad_signature, fmt::format("the algorithm {} is not the one of the key it names",
                                                                  to_string(waiting.token.algorithm)));
      case KeySet::Verdict::unknown_key:
        return refuse(CredentialFault::bad_signature, unknown_key_detail());
    }
    std::expected<CheckedClaims, OidcFault> claims = read_claims(waiting.token.payload, rules_);
    if (!claims) return std::unexpected(std::move(claims.error()));
    Verified verified = holds_now(*claims);
    if (verified) {
      std::lock_guard lock(mutex_);
      // What older keys have verified is not remembered beyond them.
      if (keys == keys_) {
        remembered_.add(waiting.digest, std::make_shared<const CheckedClaims>(*std::move(claims)), clock_.wall_now());
      }
    }
    return verified;
  }

  std::string unknown_key_detail() {
    std::lock_guard lock(mutex_);
    std::string detail = "no key of the issuer verifies it";
    if (!last_failure_.empty()) detail += "; newer ones cannot be fetched: " + last_failure_;
    return detail;
  }

  Verified holds_now(const CheckedClaims& claims) const {
    if (auto fault = check_times(claims, clock_.wall_now())) return std::unexpected(*std::move(fault));
    return claims.identity;
  }

  net::Runtime& runtime_;
  const Clock& clock_;
  const ProviderOptions options_;
  const ClaimRules rules_;
  const Fetch fetch_;
  const UniqueFd cancel_;

  std::mutex mutex_;  // guards all below
  RememberedTokens remembered_;
  std::shared_ptr<const KeySet> keys_;
  SteadyTime fetched_at_;
  SteadyTime next_fetch_;  // the epoch: at once
  unsigned failures_ = 0;  // since the last good fetch
  std::string last_failure_;
  std::vector<Waiting> waiting_;
  bool fetching_ = false;
  bool stopped_ = false;
};

}  // namespace

std::shared_ptr<Provider> Provider::create(net::Runtime& runtime, const Clock& clock, ProviderOptions options) {
  Fetch fetch = http_fetch(options.ca_certificate_path);
  return create(runtime, clock, std::move(options), std::move(fetch));
}

std::shared_ptr<Provider> Provider::create(net::Runtime& runtime, const Clock& clock, ProviderOptions options,
                                           Fetch fetch) {
  return std::make_shared<CachingProvider>(runtime, clock, std::move(options), std::move(fetch));
}

std::shared_ptr<Provider> provider_of(const config::GatewayConfig& config, net::Runtime& runtime, const Clock& clock,
                                      const std::shared_ptr<Provider>& previous) {
  if (config.oidc_issuer.empty()) return nullptr;
  ProviderOptions options;
  options.issuer = config.oidc_issuer;
  options.audience = config.oidc_audience;
  options.role_claim = config.oidc_role_claim;
  options.ca_certificate_path = config.oidc_ca_cert_path;
  if (previous && previous->options() == options) return previous;
  return Provider::create(runtime, clock, std::move(options));
}

}  // namespace hive::oidc
