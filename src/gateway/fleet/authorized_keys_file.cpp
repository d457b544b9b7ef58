#include "gateway/fleet/authorized_keys_file.h"

#include <cerrno>
#include <memory>
#include <mutex>

#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"

namespace hive::fleet {

namespace {

constexpr size_t max_file_bytes = size_t{16} << 20;

// What changes when a file is written or replaced.
struct FileVersion {
  dev_t device = 0;
  ino_t inode = 0;
  off_t size = 0;
  timespec modified{};
  timespec changed{};

  static Result<FileVersion> of(const std::string& path) {
    struct stat status{};
    if (::stat(path.c_str(), &status) != 0) return std::unexpected(system_error(errno, path));
    return FileVersion{status.st_dev, status.st_ino, status.st_size, status.st_mtim, status.st_ctim};
  }

  bool operator==(const FileVersion& other) const {
    auto same_time = [](const timespec& left, const timespec& right) {
      return left.tv_sec == right.tv_sec && left.tv_nsec == right.tv_nsec;
    };
    return device == other.device && inode == other.inode && size == other.size &&
           same_time(modified, other.modified) && same_time(changed, other.changed);
  }
};

}  // namespace

struct AuthorizedKeysFile::State {
  std::string path;
  const Clock& clock;
  std::mutex mutex;
  FileVersion version;                                 // guarded by mutex
  std::shared_ptr<const crypto::AuthorizedKeys> keys;  // guarded by mutex

  Result<std::shared_ptr<const crypto::AuthorizedKeys>> current() {
    FileVersion now = TRY(FileVersion::of(path));
    {
      std::lock_guard lock(mutex);
      if (keys != nullptr && now == version) return keys;
    }
    std::string text = TRY(read_file(path, max_file_bytes));
    auto parsed = std::make_shared<const crypto::AuthorizedKeys>(crypto::parse_authorized_keys(text));
    for (const crypto::RefusedLine& line : parsed->refused) {
      log::warning("a line of authorized_keys is refused and authorises nobody",
                   {{"file", path}, {"line", line.line_number}, {"reason", line.reason}});
    }
    std::lock_guard lock(mutex);
    version = now;
    keys = parsed;
    return keys;
  }
};

AuthorizedKeysFile::AuthorizedKeysFile(std::string path, const Clock& clock)
    : state_(new State{std::move(path), clock, {}, {}, nullptr}) {}

AuthorizedKeysFile::~AuthorizedKeysFile() = default;

Result<void> AuthorizedKeysFile::check() {
  TRY(state_->current());
  return {};
}

Result<void> AuthorizedKeysFile::authorize(const std::string& user, const crypto::PublicKey& key,
                                           const std::string& address) {
  std::shared_ptr<const crypto::AuthorizedKeys> keys = TRY(state_->current());
  TRY(check_agent_id(user));
  const crypto::AuthorizedKey* found = nullptr;
  for (const crypto::AuthorizedKey& candidate : keys->keys) {
    if (candidate.key == key) {
      found = &candidate;
      break;
    }
  }
  if (found == nullptr) {
    return fail(ErrorCode::permission_denied, "key {} is not in {}", key.fingerprint(), state_->path);
  }
  if (found->key.comment() != user) {
    return fail(ErrorCode::permission_denied, "key {} belongs to agent {}, not to {}", key.fingerprint(),
                quote(found->key.comment()), quote(user));
  }
  if (!found->from_patterns.empty() && !crypto::address_matches(found->from_patterns, address)) {
    return fail(ErrorCode::permission_denied, "line {} of {} does not admit the address {}", found->line_number,
                state_->path, address);
  }
  auto now = std::chrono::duration_cast<std::chrono::seconds>(state_->clock.wall_now().time_since_epoch()).count();
  if (found->expiry_unix_seconds && *found->expiry_unix_seconds <= now) {
    return fail(ErrorCode::permission_denied, "the key of line {} of {} has expired", found->line_number, state_->path);
  }
  return {};
}

}  // namespace hive::fleet
