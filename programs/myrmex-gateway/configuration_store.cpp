#include "configuration_store.h"

#include <filesystem>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "config/redaction.h"

namespace hive::gateway {

namespace {

constexpr std::size_t max_file_bytes = std::size_t{4} << 20;
// The file may hold secrets: nobody but its owner may read it.
constexpr unsigned file_mode = 0600;

/// The file itself where the path is a link: to replace the link would leave the old file in its place for everybody
/// else who uses it.
std::string real_path(const std::string& path) {
  std::error_code error;
  std::filesystem::path real = std::filesystem::canonical(path, error);
  return error ? path : real.string();
}

/// That the file would be refused is no fault of ours, whatever kind of failure the checks found.
Error as_invalid(Error error) {
  return {ErrorCode::invalid_argument, std::move(error.message)};
}

std::unexpected<Error> unrecorded(std::string_view why) {
  return fail(ErrorCode::unavailable, "the change cannot be recorded, so nothing was changed: {}", why);
}

/// What a change says of itself in the log; never a value.
std::string summary(const std::vector<std::string>& changed, const std::vector<std::string>& restart_required) {
  std::string text = changed.empty() ? "changed: nothing" : "changed: " + join(changed, ", ");
  if (!restart_required.empty()) text += "; needs a restart: " + join(restart_required, ", ");
  return text;
}

}  // namespace

Result<std::string> FileConfigurationStore::redacted() {
  std::lock_guard lock(mutex_);
  std::string text = TRY(read_file(path_, max_file_bytes));
  return TRY_CONTEXT(path_, config::redact(text));
}

Result<rest::ConfigurationStore::Change> FileConfigurationStore::replace(std::string text, const policy::Principal& by,
                                                                         const std::string& request_id) {
  std::lock_guard lock(mutex_);
  // As for calls of tier admin.
  if (log_ == nullptr) return unrecorded("there is no audit log; set audit_log_path in the file itself");
  if (Result<void> health = log_->health(); !health) return unrecorded(health.error().message);
  audit::Record entry;
  entry.action = "config_update";
  entry.request_id = request_id;
  entry.principal = by.name;
  entry.role = policy::to_string(by.role);
  entry.surface = "rest";
  std::vector<std::string> changed;
  Result<Change> result = change(text, changed, entry);
  if (result) {
    entry.outcome = protocol::Outcome::success;
    entry.detail = summary(result->changed, result->restart_required);
  } else {
    bool is_refused = result.error().code == ErrorCode::invalid_argument;
    entry.outcome = is_refused ? protocol::Outcome::denied : protocol::Outcome::failure;
    entry.reason = is_refused ? "invalid_config" : "config_unwritable";
    entry.detail = summary(changed, {});
  }
  // Nobody is told of a change that a power cut could take out of the log.
  Result<void> recorded = log_->append(std::move(entry));
  if (recorded) recorded = log_->flush();
  if (!recorded) {
    log::error("an event is not recorded", {{"action", "config_update"}, {"reason", recorded.error().message}});
  }
  return result;
}

Result<rest::ConfigurationStore::Change> FileConfigurationStore::change(const std::string& edited,
                                                                        std::vector<std::string>& changed,
                                                                        audit::Record announcement) {
  const std::string path = real_path(path_);
  std::string before = TRY(read_file(path, max_file_bytes));
  Result<std::string> restored = config::restore(edited, before);
  if (!restored) return std::unexpected(as_invalid(std::move(restored).error()));
  Result<std::vector<std::string>> names = config::changed_fields(before, *restored);
  if (!names) return std::unexpected(as_invalid(std::move(names).error()));
  changed = *std::move(names);
  Result<void> checked = hooks_.check(*restored);
  if (!checked) return std::unexpected(as_invalid(std::move(checked).error()));
  // Before it happens, or a kill right after it would leave rules in force that no entry tells of.
  announcement.reason = "announced";
  announcement.detail = summary(changed, {});
  Result<void> recorded = log_->append(std::move(announcement));
  if (recorded) recorded = log_->flush();
  if (!recorded) return unrecorded(recorded.error().message);
  TRY(write_file_atomically(path, *restored, file_mode));
  Result<std::vector<std::string>> restart_required = hooks_.reload();
  if (!restart_required) {
    // A reload that fails changes nothing, and then neither may the file.
    if (auto back = write_file_atomically(path, before, file_mode); !back) {
      log::error("a refused configuration could not be taken back", {{"file", path}, {"reason", back.error().message}});
    }
    return std::unexpected(as_invalid(std::move(restart_required).error()));
  }
  Result<std::string> shown = config::redact(*restored);
  if (!shown) return std::unexpected(std::move(shown).error());
  return Change{changed, *std::move(restart_required), *std::move(shown)};
}

}  // namespace hive::gateway
