#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "cli/policy_cases.h"

namespace hive::cli {

/// The gates of a configuration file, as far as they can be asked without a gateway: role, scope, approval, rate limit
/// and whether the call could be recorded. Secrets need not exist where this runs, since nobody shows a credential.
class OfflinePolicy {
 public:
  static Result<OfflinePolicy> load(const std::string& path, const Clock& clock);
  ~OfflinePolicy();
  OfflinePolicy(OfflinePolicy&&) noexcept;
  OfflinePolicy& operator=(OfflinePolicy&&) noexcept;

  /// What the gates say. The failure tells that the subject is none that this configuration knows.
  [[nodiscard]] Result<ExplanationView> explain(const PolicyCase& asked, const PolicySubject& subject) const;

 private:
  struct State;
  explicit OfflinePolicy(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hive::cli
