#include "priv/tree_copy.h"

#include <array>
#include <cerrno>
#include <climits>
#include <string>
#include <unordered_set>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

#include "base/strings.h"
#include "priv/beneath.h"
#include "priv/file_copy.h"

namespace hive::priv {

namespace {

constexpr uid_t nobody = 65534;
constexpr uid_t shift_range = 65536;
constexpr size_t max_link_groups = 1'000'000;  // remembered by inode; files of further groups are counted one by one
// How far a copy may pass its estimate: small files without blocks of their own, data written meanwhile.
constexpr std::uint64_t estimate_slack = std::uint64_t{16} << 20;

constexpr std::uint64_t stat_block = 512;  // the unit of st_blocks

class BlockCount final : public WalkVisitor {
 public:
  Result<WalkStep> enter(const WalkEntry& entry) override {
    if (!S_ISREG(entry.status.st_mode)) return WalkStep::go_on;
    bool known = false;
    if (entry.status.st_nlink > 1 && groups_.size() < max_link_groups) {
      known = !groups_.insert(entry.status.st_ino).second;
    }
    if (!known) bytes_ += content_blocks(entry.status);
    return WalkStep::go_on;
  }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  std::unordered_set<ino_t> groups_;
  std::uint64_t bytes_ = 0;
};

class TreeCopy final : public WalkVisitor {
 public:
  TreeCopy(int source, int destination, int links, const Exclusions& exclusions, const WalkLimits& limits,
           const CopyOptions& options)
      : source_(source),
        top_(destination),
        links_(links),
        exclusions_(exclusions),
        limits_(limits),
        options_(options),
        cloning_(options.may_clone ? Cloning::untried : Cloning::impossible) {}

  Result<CopyReport> run() {
    auto walked = walk_tree(source_, exclusions_, limits_, *this);
    if (!walked && !report_.out_of_space) return std::unexpected(walked.error());
    return report_;
  }

  Result<WalkStep> enter(const WalkEntry& entry) override {
    auto made = make(entry);
    if (!made && disk_full_) report_.out_of_space = true;
    if (!made) return std::unexpected(with_context(made.error(), quote(entry.path)));
    if (report_.out_of_space) return WalkStep::stop;
    return WalkStep::go_on;
  }

  Result<void> leave(const WalkEntry& folder) override {
    UniqueFd made = std::move(folders_.back());
    folders_.pop_back();
    UniqueFd source = open_beneath(folder.fd, ".", O_RDONLY | O_DIRECTORY);
    if (!source) return std::unexpected(system_error(errno, quote(folder.path)));
    TRY_CONTEXT(quote(folder.path), finish(source.get(), made.get(), folder.status));
    return {};
  }

 private:
  enum class Cloning { untried, works, impossible };

  [[nodiscard]] int here() const { return folders_.empty() ? top_ : folders_.back().get(); }

  Result<void> make(const WalkEntry& entry) {
    std::string name(entry.name);
    if (S_ISDIR(entry.status.st_mode)) {
      if (::mkdirat(here(), name.c_str(), 0700) != 0) return failed("make a folder");
      UniqueFd made = open_beneath(here(), name.c_str(), O_RDONLY | O_DIRECTORY);
      if (!made) return failed("open a new folder");
      folders_.push_back(std::move(made));
    } else if (S_ISREG(entry.status.st_mode)) {
      TRY(make_file(entry, name));
      if (report_.out_of_space) return {};
    } else if (S_ISLNK(entry.status.st_mode)) {
      TRY(make_link(entry, name));
    } else {
      ++report_.skipped_special;
      return {};
    }
    ++report_.entries;
    if (!S_ISREG(entry.status.st_mode)) TRY(count_metadata(entry.status));
    return {};
  }

  Result<void> count_metadata(const struct stat& status) {
    metadata_ += static_cast<std::uint64_t>(status.st_blocks) * stat_block;
    if (metadata_ < options_.metadata_step) return {};
    metadata_ = 0;
    if (options_.admit && !TRY(options_.admit(0))) report_.out_of_space = true;
    return {};
  }

  Result<void> make_link(const WalkEntry& entry, const std::string& name) {
    std::array<char, PATH_MAX> target;
    ssize_t size = ::readlinkat(entry.fd, "", target.data(), target.size() - 1);
    if (size < 0) return failed("read a link");
    target[static_cast<size_t>(size)] = '\0';
    if (::symlinkat(target.data(), here(), name.c_str()) != 0) return failed("make a link");
    UniqueFd made = open_beneath(here(), name.c_str(), O_PATH | O_NOFOLLOW);
    const std::array<timespec, 2> times = {entry.status.st_atim, entry.status.st_mtim};
    if (!made ||
        ::fchownat(made.get(), "", options_.shift.back(entry.status.st_uid), options_.shift.back(entry.status.st_gid),
                   AT_EMPTY_PATH) != 0 ||
        ::utimensat(made.get(), "", times.data(), AT_EMPTY_PATH) != 0) {
      return failed("give a link its owner");
    }
    return {};
  }

  Result<void> make_file(const WalkEntry& entry, const std::string& name) {
    std::string group = fmt::format("{:x}-{:x}", entry.status.st_dev, entry.status.st_ino);
    bool grouped = entry.status.st_nlink > 1;
    // EMLINK: the group is larger than the file system allows, so its next file begins a new one.
    if (grouped && ::linkat(links_, group.c_str(), here(), name.c_str(), 0) == 0) return {};
    if (grouped && errno != ENOENT && errno != EMLINK) return failed("link a file");
    UniqueFd source = TRY(reopen(entry.fd, O_RDONLY | O_NOATIME));
    UniqueFd made = open_beneath(here(), name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, Mounts::enter, 0600);
    if (!made) return failed("make a file");
    if (entry.status.st_size > 0) TRY(carry_content(source.get(), made.get(), entry.status));
    if (report_.out_of_space) return {};
    TRY(finish(source.get(), made.get(), entry.status));
    if (grouped && ::linkat(here(), name.c_str(), links_, group.c_str(), 0) != 0 && errno != EEXIST) {
      return failed("remember a file with several names");
    }
    struct stat after{};
    if (::fstat(source.get(), &after) == 0 &&
        (after.st_size != entry.status.st_size || after.st_mtim.tv_sec != entry.status.st_mtim.tv_sec ||
         after.st_mtim.tv_nsec != entry.status.st_mtim.tv_nsec)) {
      ++report_.changed;
    }
    return {};
  }

  Result<void> carry_content(int source, int made, const struct stat& status) {
    if (cloning_ != Cloning::impossible) {
      auto cloned = clone_content(source, made);
      if (!cloned) return failed_as(cloned.error());
      if (*cloned) {
        cloning_ = Cloning::works;
        ++report_.cloned_files;
        report_.bytes += content_blocks(status);
        return {};
      }
      // One file that can't be cloned among many that can is copied alone; where the first can't, none will.
      if (cloning_ == Cloning::untried) cloning_ = Cloning::impossible;
    }
    TRY(ask_for_space());
    if (report_.out_of_space) return {};
    auto copied = copy_content(source, made, status, [this](std::uint64_t count) -> Result<void> {
      report_.bytes += count;
      copied_ += count;
      if (copied_ > admitted_) {
        report_.out_of_space = true;
        return fail(ErrorCode::resource_exhausted, "more data than the tree held when it was measured");
      }
      if (limits_.cancelled != nullptr && limits_.cancelled->load(std::memory_order_relaxed)) {
        return fail(ErrorCode::cancelled, "hive-priv is stopping");
      }
      if (limits_.deadline != SteadyTime::max() && system_clock().steady_now() > limits_.deadline) {
        return fail(ErrorCode::timed_out, "copying the tree took too long");
      }
      return {};
    });
    if (!copied) return failed_as(copied.error());
    return {};
  }

  // Whether what can't be cloned may be copied is asked once, for everything that is left.
  Result<void> ask_for_space() {
    if (asked_ || !options_.admit) {
      if (!asked_) admitted_ = UINT64_MAX;
      asked_ = true;
      return {};
    }
    asked_ = true;
    std::uint64_t all = TRY(bytes_to_copy(source_, exclusions_, limits_));
    std::uint64_t rest = all - std::min(all, report_.bytes);
    admitted_ = rest + rest / 16 + estimate_slack;
    if (!TRY(options_.admit(rest))) report_.out_of_space = true;
    return {};
  }

  // Owner before mode: a change of owner may clear bits.
  Result<void> finish(int source, int made, const struct stat& status) {
    TRY(copy_user_attributes(source, made));
    mode_t mode = status.st_mode & (S_ISDIR(status.st_mode) ? 01777 : 0777);
    // Without its ACL, a file's group would get what the ACL's mask allows to others.
    if (has_access_list(source)) mode &= ~static_cast<mode_t>(070);
    const std::array<timespec, 2> times = {status.st_atim, status.st_mtim};
    if (::fchown(made, options_.shift.back(status.st_uid), options_.shift.back(status.st_gid)) != 0 ||
        ::fchmod(made, mode) != 0 || ::futimens(made, times.data()) != 0) {
      return failed("set owner and mode");
    }
    return {};
  }

  Result<void> failed(std::string_view what) {
    disk_full_ = errno == ENOSPC || errno == EDQUOT;
    return std::unexpected(system_error(errno, what));
  }
  Result<void> failed_as(Error error) {
    disk_full_ = error.code == ErrorCode::resource_exhausted;
    return std::unexpected(std::move(error));
  }

  int source_;
  int top_;
  int links_;
  const Exclusions& exclusions_;
  const WalkLimits& limits_;
  const CopyOptions& options_;
  Cloning cloning_;
  CopyReport report_;
  std::vector<UniqueFd> folders_;
  bool asked_ = false;
  bool disk_full_ = false;
  std::uint64_t admitted_ = 0;
  std::uint64_t copied_ = 0;
  std::uint64_t metadata_ = 0;
};

}  // namespace

uid_t OwnerShift::back(uid_t id) const {
  if (base == 0) return id;
  return id >= base && id - base < shift_range ? id - base : nobody;
}

Result<CopyReport> copy_tree(int source, int destination, int links, const Exclusions& exclusions,
                             const WalkLimits& limits, const CopyOptions& options) {
  return TreeCopy(source, destination, links, exclusions, limits, options).run();
}

Result<std::uint64_t> bytes_to_copy(int source, const Exclusions& exclusions, const WalkLimits& limits) {
  BlockCount count;
  TRY(walk_tree(source, exclusions, limits, count));
  return count.bytes();
}

}  // namespace hive::priv
