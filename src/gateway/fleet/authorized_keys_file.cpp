#include "gateway/fleet/authorized_keys_file.h"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <memory>
#include <mutex>
#include <unordered_map>

#include <sys/stat.h>

#include "base/file.h"
#include "base/log.h"
#include "base/strings.h"
#include "gateway/fleet/key_lines.h"

namespace hive::fleet {

namespace {

constexpr size_t max_file_bytes = size_t{16} << 20;
// Whoever writes a file in place needs a moment from the first byte to the last.
constexpr std::int64_t settle_ns = 150'000'000;
// Some editors move a file away before they write the new one.
constexpr std::chrono::milliseconds missing_patience{400};

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

  /// Whether the last change is long enough ago. A change right behind it could share its time stamp, which the kernel
  /// takes from a clock of a few milliseconds, and could have stopped in the middle.
  [[nodiscard]] bool is_settled() const {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    std::int64_t age = (std::int64_t{now.tv_sec} - changed.tv_sec) * 1'000'000'000 + now.tv_nsec - changed.tv_nsec;
    // The clock may have been set back.
    return age >= settle_ns || age < 0;
  }
};

// What was read of the file, with the index that every handshake needs.
struct KeySet {
  std::string text;
  crypto::AuthorizedKeys parsed;
  std::unordered_map<std::string, const crypto::AuthorizedKey*> by_fingerprint;
  std::vector<std::int64_t> expiries;  // sorted
  std::vector<std::string> agents;     // sorted, each once

  static std::shared_ptr<const KeySet> parse(std::string text) {
    auto set = std::make_shared<KeySet>();
    set->parsed = crypto::parse_authorized_keys(text);
    set->text = std::move(text);
    for (const crypto::AuthorizedKey& key : set->parsed.keys) {
      set->by_fingerprint.emplace(key.key.fingerprint(), &key);
      if (key.expiry_unix_seconds) set->expiries.push_back(*key.expiry_unix_seconds);
      if (check_agent_id(key.key.comment())) set->agents.push_back(key.key.comment());
    }
    std::ranges::sort(set->expiries);
    std::ranges::sort(set->agents);
    auto repeated = std::ranges::unique(set->agents);
    set->agents.erase(repeated.begin(), repeated.end());
    return set;
  }

  [[nodiscard]] const crypto::AuthorizedKey* find(const std::string& fingerprint) const {
    auto found = by_fingerprint.find(fingerprint);
    return found == by_fingerprint.end() ? nullptr : found->second;
  }
};

}  // namespace

struct AuthorizedKeysFile::State {
  State(std::string file, const Clock& used_clock) : path(std::move(file)), clock(used_clock) {}

  const std::string path;
  const Clock& clock;
  std::mutex edit_mutex;  // held from reading the file to replacing it
  std::mutex mutex;
  FileVersion version;                      // guarded by mutex
  std::shared_ptr<const KeySet> keys;       // guarded by mutex; null: not read yet
  bool settled = false;                     // guarded by mutex; `keys` is what the file holds while its version stays
  std::optional<SteadyTime> missing_since;  // guarded by mutex

  Result<std::shared_ptr<const KeySet>> current() {
    FileVersion now = TRY(FileVersion::of(path));
    {
      std::lock_guard lock(mutex);
      missing_since.reset();
      if (keys != nullptr && settled && now == version) return keys;
    }
    bool is_settled = now.is_settled();
    std::string text = TRY(read_file(path, max_file_bytes));
    {
      std::lock_guard lock(mutex);
      if (keys != nullptr && keys->text == text) {
        version = now;
        settled = is_settled;
        return keys;
      }
    }
    std::shared_ptr<const KeySet> parsed = KeySet::parse(std::move(text));
    for (const crypto::RefusedLine& line : parsed->parsed.refused) {
      log::warning("a line of authorized_keys is refused and authorises nobody",
                   {{"file", path}, {"line", line.line_number}, {"reason", line.reason}});
    }
    std::lock_guard lock(mutex);
    version = now;
    settled = is_settled;
    keys = parsed;
    return parsed;
  }

  std::shared_ptr<const KeySet> last_read() {
    std::lock_guard lock(mutex);
    return keys;
  }

  // Whether the file has been missing long enough to count as empty.
  bool has_gone() {
    std::lock_guard lock(mutex);
    SteadyTime now = clock.steady_now();
    if (!missing_since) missing_since = now;
    if (now - *missing_since < missing_patience) return false;
    keys = KeySet::parse({});
    settled = false;
    return true;
  }

  Result<void> check_key(const KeySet& set, const std::string& user, const std::string& fingerprint,
                         const std::string& address) const {
    TRY(check_agent_id(user));
    const crypto::AuthorizedKey* found = set.find(fingerprint);
    if (found == nullptr) return fail(ErrorCode::permission_denied, "key {} is not in {}", fingerprint, path);
    if (found->key.comment() != user) {
      return fail(ErrorCode::permission_denied, "key {} belongs to agent {}, not to {}", fingerprint,
                  quote(found->key.comment()), quote(user));
    }
    if (!found->from_patterns.empty() && !crypto::address_matches(found->from_patterns, address)) {
      return fail(ErrorCode::permission_denied, "line {} of {} does not admit the address {}", found->line_number, path,
                  address);
    }
    if (has_expired(*found)) {
      return fail(ErrorCode::permission_denied, "the key of line {} of {} has expired", found->line_number, path);
    }
    return {};
  }

  [[nodiscard]] std::int64_t unix_seconds() const {
    return std::chrono::duration_cast<std::chrono::seconds>(clock.wall_now().time_since_epoch()).count();
  }

  [[nodiscard]] bool has_expired(const crypto::AuthorizedKey& key) const {
    return key.expiry_unix_seconds && *key.expiry_unix_seconds <= unix_seconds();
  }

  // Puts `text` in the file's place, and in force at once.
  Result<void> replace(const std::string& text) {
    TRY(replace_keeping_attributes(path, text));
    TRY(current());
    return {};
  }

  Result<std::size_t> remove(const std::string& agent, std::string_view fingerprint) {
    TRY(check_agent_id(agent));
    std::lock_guard edit(edit_mutex);
    FileLock lock = TRY(FileLock::take(path));
    Result<std::string> text = read_file(path, max_file_bytes);
    // Without a file nobody is authorised.
    if (!text && text.error().code == ErrorCode::not_found) return 0;
    if (!text) return std::unexpected(text.error());
    KeyRemoval removal = without_keys(*std::move(text), agent, fingerprint);
    if (removal.removed > 0) TRY(replace(removal.text));
    return removal.removed;
  }
};

AuthorizedKeysFile::AuthorizedKeysFile(std::string path, const Clock& clock)
    : state_(new State(std::move(path), clock)) {}

AuthorizedKeysFile::~AuthorizedKeysFile() = default;

const std::string& AuthorizedKeysFile::path() const {
  return state_->path;
}

Result<void> AuthorizedKeysFile::check() {
  TRY(state_->current());
  return {};
}

Result<bool> AuthorizedKeysFile::refresh() {
  Result<FileVersion> now = FileVersion::of(state_->path);
  if (!now && now.error().code == ErrorCode::not_found) return state_->has_gone();
  if (!now) return std::unexpected(now.error());
  {
    std::lock_guard lock(state_->mutex);
    if (state_->keys != nullptr && state_->settled && *now == state_->version) {
      state_->missing_since.reset();
      return true;
    }
  }
  if (!now->is_settled()) return false;
  TRY(state_->current());
  return true;
}

Result<void> AuthorizedKeysFile::authorize(const std::string& user, const crypto::PublicKey& key,
                                           const std::string& address) {
  std::shared_ptr<const KeySet> keys = TRY(state_->current());
  return state_->check_key(*keys, user, key.fingerprint(), address);
}

Result<void> AuthorizedKeysFile::authorize_session(const std::string& user, const std::string& fingerprint,
                                                   const std::string& address) {
  std::shared_ptr<const KeySet> keys = state_->last_read();
  if (keys == nullptr) return fail(ErrorCode::permission_denied, "{} has not been read yet", state_->path);
  return state_->check_key(*keys, user, fingerprint, address);
}

KeyState AuthorizedKeysFile::state() const {
  std::shared_ptr<const KeySet> keys = state_->last_read();
  if (keys == nullptr) return {};
  auto first_valid = std::ranges::upper_bound(keys->expiries, state_->unix_seconds());
  auto expired = static_cast<std::size_t>(first_valid - keys->expiries.begin());
  return {std::move(keys), expired};
}

Result<KeyAddition> AuthorizedKeysFile::add_key(const std::string& agent, const crypto::PublicKey& key) {
  TRY(check_agent_id(agent));
  if (!key.is_ed25519()) {
    return fail(ErrorCode::invalid_argument, "key type {} is not accepted; make an Ed25519 key: ssh-keygen -t ed25519",
                quote(key.type()));
  }
  std::lock_guard edit(state_->edit_mutex);
  FileLock lock = TRY(FileLock::take(state_->path));
  Result<std::string> text = read_file(state_->path, max_file_bytes);
  if (!text && text.error().code != ErrorCode::not_found) return std::unexpected(text.error());
  crypto::AuthorizedKeys present = crypto::parse_authorized_keys(text ? *text : "");
  for (const crypto::AuthorizedKey& entry : present.keys) {
    if (!(entry.key == key)) continue;
    if (entry.key.comment() != agent) {
      return fail(ErrorCode::already_exists, "key {} is the key of another agent; make a new key", key.fingerprint());
    }
    if (state_->has_expired(entry)) {
      return fail(ErrorCode::already_exists, "key {} has expired by its line {}; make a new key", key.fingerprint(),
                  entry.line_number);
    }
    return KeyAddition::present;
  }
  std::string next = with_key(text ? *std::move(text) : "", crypto::PublicKey::from_ed25519(key.ed25519(), agent));
  if (next.size() > max_file_bytes) {
    return fail(ErrorCode::resource_exhausted, "{}: would be larger than {} bytes", state_->path, max_file_bytes);
  }
  TRY(state_->replace(next));
  return KeyAddition::added;
}

Result<std::size_t> AuthorizedKeysFile::remove_agent(const std::string& agent) {
  return state_->remove(agent, {});
}

Result<std::size_t> AuthorizedKeysFile::remove_key(const std::string& agent, std::string_view fingerprint) {
  if (fingerprint.empty()) return fail(ErrorCode::invalid_argument, "the fingerprint must not be empty");
  return state_->remove(agent, fingerprint);
}

Result<KeyListing> AuthorizedKeysFile::list() {
  std::shared_ptr<const KeySet> keys = TRY(state_->current());
  KeyListing listing{keys->text, {}};
  for (const crypto::AuthorizedKey& entry : keys->parsed.keys) {
    KeyLine line;
    line.number = entry.line_number;
    line.agent = entry.key.comment();
    line.fingerprint = entry.key.fingerprint();
    line.from = entry.from_patterns;
    if (entry.expiry_unix_seconds) line.expires_at = WallTime(std::chrono::seconds(*entry.expiry_unix_seconds));
    listing.lines.push_back(std::move(line));
  }
  for (const crypto::RefusedLine& refused : keys->parsed.refused)
    listing.lines.push_back({.number = refused.line_number, .refused = refused.reason});
  std::ranges::sort(listing.lines, {}, &KeyLine::number);
  return listing;
}

std::shared_ptr<const std::vector<std::string>> AuthorizedKeysFile::agents() const {
  std::shared_ptr<const KeySet> keys = state_->last_read();
  if (keys == nullptr) return std::make_shared<const std::vector<std::string>>();
  return {keys, &keys->agents};
}

}  // namespace hive::fleet
