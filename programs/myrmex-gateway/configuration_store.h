#pragma once

#include <functional>
#include <mutex>
#include <string>

#include "gateway/audit/log.h"
#include "gateway/surfaces/rest/configuration_store.h"

namespace hive::gateway {

/// The configuration file on disk. One change at a time; thread-safe.
class FileConfigurationStore final : public rest::ConfigurationStore {
 public:
  struct Hooks {
    /// Whether the gateway would start with this text in the place of the file; every problem has a line of its own.
    std::function<Result<void>(const std::string& text)> check;
    /// Puts the file in force, all or nothing, and names the settings that need a restart.
    std::function<Result<std::vector<std::string>>()> reload;
  };

  /// `log` may be null: no audit log, and then nothing can be replaced.
  FileConfigurationStore(std::string path, audit::Log* log, Hooks hooks)
      : path_(std::move(path)), log_(log), hooks_(std::move(hooks)) {}

  Result<std::string> redacted() override;
  Result<Change> replace(std::string text, const policy::Principal& by, const std::string& request_id) override;

 private:
  /// Tells in `changed` what differs. `announcement` is on disk before the file is changed.
  Result<Change> change(const std::string& edited, std::vector<std::string>& changed, audit::Record announcement);

  const std::string path_;
  audit::Log* const log_;
  const Hooks hooks_;
  std::mutex mutex_;
};

}  // namespace hive::gateway
