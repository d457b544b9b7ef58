#include "priv/walk.h"

#include <cerrno>
#include <memory>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>

#include "base/strings.h"
#include "priv/beneath.h"

namespace hive::priv {

namespace {

constexpr std::uint64_t entries_between_looks = 64;  // at the clock and at the cancellation
constexpr int max_removal_passes = 4;

struct CloseDir {
  void operator()(DIR* entries) const { ::closedir(entries); }
};
using Entries = std::unique_ptr<DIR, CloseDir>;

// Opens a folder again, for reading its names.
Result<Entries> read_entries(int folder, const std::string& path) {
  UniqueFd fd = open_beneath(folder, ".", O_RDONLY | O_DIRECTORY);
  if (!fd) return std::unexpected(system_error(errno, quote(path)));
  Entries entries(::fdopendir(fd.get()));
  if (!entries) return std::unexpected(system_error(errno, quote(path)));
  static_cast<void>(fd.release());
  return entries;
}

// The next name, or nullptr at the end.
Result<const char*> next_name(DIR* entries, const std::string& path) {
  while (true) {
    errno = 0;
    const dirent* entry = ::readdir(entries);
    if (entry == nullptr && errno != 0) return std::unexpected(system_error(errno, quote(path)));
    if (entry == nullptr) return nullptr;
    std::string_view name = entry->d_name;
    if (name != "." && name != "..") return entry->d_name;
  }
}

// Counts entries and looks at the bounds from time to time.
class Budget {
 public:
  explicit Budget(const WalkLimits& limits) : limits_(limits) {}

  Result<void> spend_one() {
    if (++entries_ > limits_.max_entries) {
      return fail(ErrorCode::resource_exhausted, "the tree holds more than {} entries", limits_.max_entries);
    }
    if (entries_ % entries_between_looks != 0) return {};
    if (limits_.cancelled != nullptr && limits_.cancelled->load(std::memory_order_relaxed)) {
      return fail(ErrorCode::cancelled, "hive-priv is stopping");
    }
    if (limits_.deadline != SteadyTime::max() && system_clock().steady_now() > limits_.deadline) {
      return fail(ErrorCode::timed_out, "walking the tree took too long; it holds more than {} entries", entries_);
    }
    return {};
  }

 private:
  const WalkLimits& limits_;
  std::uint64_t entries_ = 0;
};

struct Level {
  UniqueFd fd;  // of the folder; not open for the root
  Entries entries;
  struct stat status{};
  Exclusions::Position position;
  size_t path_size = 0;  // of the path without this folder
};

Result<void> too_deep(const WalkLimits& limits) {
  return fail(ErrorCode::resource_exhausted, "the tree is deeper than {} levels", limits.max_depth);
}

class Walk {
 public:
  Walk(const Exclusions& exclusions, const WalkLimits& limits, WalkVisitor& visitor)
      : exclusions_(exclusions), limits_(limits), budget_(limits), visitor_(visitor) {}

  Result<void> run(int root) {
    levels_.emplace_back();
    levels_.back().entries = TRY(read_entries(root, path_));
    levels_.back().position = exclusions_.root();
    while (!levels_.empty() && !stopped_) {
      const char* name = TRY(next_name(levels_.back().entries.get(), path_));
      if (name != nullptr) {
        TRY(budget_.spend_one());
        TRY(visit(name));
      } else {
        TRY(leave());
      }
    }
    return {};
  }

 private:
  Result<void> visit(const char* name) {
    bool excluded = false;
    Exclusions::Position position = Exclusions::enter(levels_.back().position, name, excluded);
    if (excluded) return {};
    size_t path_size = path_.size();
    if (!path_.empty()) path_ += '/';
    path_ += name;
    UniqueFd fd = open_beneath(::dirfd(levels_.back().entries.get()), name, O_PATH | O_NOFOLLOW, Mounts::refuse);
    if (!fd && errno == ENOENT) {
      path_.resize(path_size);
      return {};
    }
    if (!fd && errno == EXDEV) {
      return fail(ErrorCode::permission_denied, "{} is a mount point; unmount it", quote(path_));
    }
    struct stat status{};
    if (!fd || ::fstat(fd.get(), &status) != 0) return std::unexpected(system_error(errno, quote(path_)));
    WalkStep step = TRY(visitor_.enter({.fd = fd.get(), .name = name, .path = path_, .status = status}));
    stopped_ = step == WalkStep::stop;
    if (step != WalkStep::go_on || !S_ISDIR(status.st_mode)) {
      path_.resize(path_size);
      return {};
    }
    if (levels_.size() >= limits_.max_depth) return too_deep(limits_);
    Level level;
    level.entries = TRY(read_entries(fd.get(), path_));
    level.fd = std::move(fd);
    level.status = status;
    level.position = std::move(position);
    level.path_size = path_size;
    levels_.push_back(std::move(level));
    return {};
  }

  Result<void> leave() {
    if (levels_.size() > 1) {
      const Level& level = levels_.back();
      std::string_view path = path_;
      std::string_view name = path.substr(level.path_size == 0 ? 0 : level.path_size + 1);
      TRY(visitor_.leave({.fd = level.fd.get(), .name = name, .path = path_, .status = level.status}));
      path_.resize(level.path_size);
    }
    levels_.pop_back();
    return {};
  }

  const Exclusions& exclusions_;
  const WalkLimits& limits_;
  Budget budget_;
  WalkVisitor& visitor_;
  std::vector<Level> levels_;
  std::string path_;
  bool stopped_ = false;
};

// The flags live on the inode, and only a descriptor that is open for more than O_PATH reaches them.
void clear_flags(int folder, const char* name) {
  UniqueFd fd = open_beneath(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, Mounts::refuse);
  int flags = 0;
  if (!fd || ::ioctl(fd.get(), FS_IOC_GETFLAGS, &flags) != 0) return;
  flags &= ~(FS_IMMUTABLE_FL | FS_APPEND_FL);
  ::ioctl(fd.get(), FS_IOC_SETFLAGS, &flags);
}

class Removal {
 public:
  Removal(const WalkLimits& limits, bool clear_immutable)
      : limits_(limits), budget_(limits), clear_immutable_(clear_immutable) {}

  Result<void> run(int folder, const std::string& name) {
    if (TRY(remove_entry(folder, name.c_str()))) return {};
    TRY(go_into(folder, name.c_str()));
    while (!levels_.empty()) {
      Level& level = levels_.back();
      const char* entry = TRY(next_name(level.entries.get(), level.name));
      if (entry != nullptr) {
        TRY(budget_.spend_one());
        if (!TRY(remove_entry(::dirfd(level.entries.get()), entry))) {
          TRY(go_into(::dirfd(level.entries.get()), entry));
        }
      } else {
        TRY(finish(folder));
      }
    }
    return {};
  }

 private:
  struct Level {
    Entries entries;
    std::string name;
    int passes = 0;
  };

  // False for a folder that isn't empty.
  Result<bool> remove_entry(int folder, const char* name) {
    for (int tries = 0;; ++tries) {
      if (::unlinkat(folder, name, 0) == 0 || errno == ENOENT) return true;
      int error = errno;
      if (error == EISDIR || error == EPERM) {
        if (::unlinkat(folder, name, AT_REMOVEDIR) == 0 || errno == ENOENT) return true;
        if (errno == ENOTEMPTY || errno == EEXIST) return false;
        if (errno != ENOTDIR) error = errno;
      }
      if (error != EPERM || !clear_immutable_ || tries > 0) {
        return std::unexpected(system_error(error, "remove " + quote(name)));
      }
      clear_flags(folder, ".");
      clear_flags(folder, name);
    }
  }

  Result<void> go_into(int folder, const char* name) {
    if (levels_.size() >= limits_.max_depth) return too_deep(limits_);
    if (clear_immutable_) clear_flags(folder, name);
    UniqueFd fd = open_beneath(folder, name, O_PATH | O_DIRECTORY | O_NOFOLLOW, Mounts::refuse);
    if (!fd) return std::unexpected(system_error(errno, "remove " + quote(name)));
    levels_.push_back({.entries = TRY(read_entries(fd.get(), name)), .name = name});
    return {};
  }

  // Reading a folder that shrinks can pass over entries, so an emptied folder that isn't empty is read again.
  Result<void> finish(int folder) {
    Level& level = levels_.back();
    int parent = levels_.size() > 1 ? ::dirfd(levels_[levels_.size() - 2].entries.get()) : folder;
    if (TRY(remove_entry(parent, level.name.c_str()))) {
      levels_.pop_back();
      return {};
    }
    if (++level.passes >= max_removal_passes) {
      return fail(ErrorCode::io, "remove {}: it keeps being filled", quote(level.name));
    }
    ::rewinddir(level.entries.get());
    return {};
  }

  const WalkLimits& limits_;
  Budget budget_;
  bool clear_immutable_;
  std::vector<Level> levels_;
};

}  // namespace

Result<void> walk_tree(int root, const Exclusions& exclusions, const WalkLimits& limits, WalkVisitor& visitor) {
  return Walk(exclusions, limits, visitor).run(root);
}

Result<void> remove_tree(int folder, const std::string& name, const WalkLimits& limits, bool clear_immutable) {
  return Removal(limits, clear_immutable).run(folder, name);
}

}  // namespace hive::priv
