#include "priv/file_copy.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/xattr.h>
#include <unistd.h>

namespace hive::priv {

namespace {

constexpr size_t buffer_bytes = size_t{256} << 10;
constexpr off_t chunk_bytes = off_t{64} << 20;
constexpr std::uint64_t block_bytes = 4096;
constexpr size_t max_attribute_names = size_t{64} << 10;
constexpr size_t max_attribute_bytes = size_t{64} << 10;
constexpr std::string_view user_prefix = "user.";

using More = std::function<Result<void>(std::uint64_t)>;

// Copies ranges of one file into another at the same offsets: in the kernel where it can, else through a buffer.
class RangeCopy {
 public:
  RangeCopy(int source, int destination, const More& more) : source_(source), destination_(destination), more_(more) {}

  // Stops early at the end of the source.
  Result<void> copy(off_t offset, off_t end) {
    while (offset < end) {
      auto wanted = static_cast<size_t>(std::min<off_t>(end - offset, chunk_bytes));
      ssize_t done = in_kernel_ ? copy_in_kernel(offset, wanted) : copy_by_buffer(offset, wanted);
      if (done < 0 && errno == EINTR) continue;
      if (done < 0 && in_kernel_ && (errno == EXDEV || errno == EINVAL || errno == EOPNOTSUPP || errno == ENOSYS)) {
        in_kernel_ = false;
        buffer_.resize(buffer_bytes);
        continue;
      }
      if (done < 0) return std::unexpected(system_error(errno, "copy a file"));
      if (done == 0) return {};
      offset += done;
      TRY(more_(static_cast<std::uint64_t>(done)));
    }
    return {};
  }

 private:
  ssize_t copy_in_kernel(off_t offset, size_t wanted) const {
    off64_t from = offset;
    off64_t to = offset;
    return ::copy_file_range(source_, &from, destination_, &to, wanted, 0);
  }

  ssize_t copy_by_buffer(off_t offset, size_t wanted) {
    ssize_t got = ::pread(source_, buffer_.data(), std::min(buffer_.size(), wanted), offset);
    for (ssize_t written = 0; written < got;) {
      ssize_t put =
          ::pwrite(destination_, buffer_.data() + written, static_cast<size_t>(got - written), offset + written);
      if (put < 0 && errno == EINTR) continue;
      if (put < 0) return -1;
      written += put;
    }
    return got;
  }

  int source_;
  int destination_;
  const More& more_;
  bool in_kernel_ = true;
  std::vector<char> buffer_;
};

}  // namespace

Result<bool> clone_content(int source, int destination) {
  while (::ioctl(destination, FICLONE, source) != 0) {
    if (errno == EINTR) continue;
    // What ioctl_ficlonerange(2) names for "can't", beside the EPERM of files that must not be shared.
    if (errno == EOPNOTSUPP || errno == ENOTTY || errno == EXDEV || errno == EINVAL || errno == EPERM) return false;
    return std::unexpected(system_error(errno, "clone a file"));
  }
  return true;
}

Result<void> copy_content(int source, int destination, const struct stat& status,
                          const std::function<Result<void>(std::uint64_t)>& more) {
  RangeCopy ranges(source, destination, more);
  if (content_blocks(status) >= static_cast<std::uint64_t>(status.st_size)) return ranges.copy(0, status.st_size);
  for (off_t at = 0; at < status.st_size;) {
    off_t data = ::lseek(source, at, SEEK_DATA);
    if (data < 0 && errno == ENXIO) break;
    if (data < 0) return std::unexpected(system_error(errno, "look for data in a file"));
    if (data >= status.st_size) break;
    off_t hole = ::lseek(source, data, SEEK_HOLE);
    if (hole < 0) return std::unexpected(system_error(errno, "look for a hole in a file"));
    hole = std::min(hole, status.st_size);
    TRY(ranges.copy(data, hole));
    at = hole;
  }
  if (::ftruncate(destination, status.st_size) != 0) return std::unexpected(system_error(errno, "extend a file"));
  return {};
}

Result<void> copy_user_attributes(int source, int destination) {
  std::array<char, 512> few;
  std::vector<char> many;
  char* names = few.data();
  ssize_t size = ::flistxattr(source, few.data(), few.size());
  if (size < 0 && errno == ERANGE) {
    many.resize(max_attribute_names);
    names = many.data();
    size = ::flistxattr(source, many.data(), many.size());
  }
  if (size < 0 && (errno == EOPNOTSUPP || errno == ERANGE || errno == E2BIG)) return {};
  if (size < 0) return std::unexpected(system_error(errno, "list extended attributes"));
  std::string_view rest(names, static_cast<size_t>(size));
  std::vector<char> value;
  while (!rest.empty()) {
    std::string name(rest.substr(0, rest.find('\0')));
    rest.remove_prefix(std::min(name.size() + 1, rest.size()));
    if (!name.starts_with(user_prefix)) continue;
    value.resize(max_attribute_bytes);
    ssize_t length = ::fgetxattr(source, name.c_str(), value.data(), value.size());
    if (length < 0) continue;  // it went away, or is larger than what is carried over
    if (::fsetxattr(destination, name.c_str(), value.data(), static_cast<size_t>(length), XATTR_CREATE) != 0 &&
        errno != EOPNOTSUPP && errno != ENOSPC && errno != E2BIG && errno != EEXIST) {
      return std::unexpected(system_error(errno, "set an extended attribute"));
    }
  }
  return {};
}

bool has_access_list(int fd) {
  return ::fgetxattr(fd, "system.posix_acl_access", nullptr, 0) > 0;
}

std::uint64_t content_blocks(const struct stat& status) {
  auto size = (static_cast<std::uint64_t>(status.st_size) + block_bytes - 1) / block_bytes * block_bytes;
  return std::min(size, static_cast<std::uint64_t>(status.st_blocks) * 512);
}

}  // namespace hive::priv
