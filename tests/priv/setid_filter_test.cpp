#include "priv/setid_filter.h"

#include <cerrno>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host_tree.h"
#include "priv/beneath.h"

namespace hive::priv {
namespace {

using SetidFilterTest = HostTree;

TEST_F(SetidFilterTest, P12_NoFileGetsSuchABitAndEverythingElseWorks) {
  write(folder_ / "file", "x");
  pid_t child = ::fork();
  if (child == 0) {
    // Each failed promise has a status of its own.
    auto refused = [](int result) { return result < 0 && errno == EPERM; };
    UniqueFd folder(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY));
    UniqueFd file(::openat(folder.get(), "file", O_RDWR));
    if (!forbid_setid_bits()) ::_exit(1);
    if (!refused(::fchmod(file.get(), 04755))) ::_exit(2);
    if (!refused(::fchmod(file.get(), 02755))) ::_exit(3);
    if (!refused(::fchmodat(folder.get(), "file", 06755, 0))) ::_exit(4);
    if (!refused(::mkdirat(folder.get(), "a", 02755))) ::_exit(5);
    if (!refused(::openat(folder.get(), "b", O_CREAT | O_WRONLY, 04755))) ::_exit(6);
    if (!refused(::mknodat(folder.get(), "c", S_IFREG | 04755, 0))) ::_exit(7);
    if (::fchmod(file.get(), 01777) != 0) ::_exit(8);
    if (::mkdirat(folder.get(), "d", 01755) != 0) ::_exit(9);
    if (!open_beneath(folder.get(), "e", O_CREAT | O_WRONLY, Mounts::enter, 0600)) ::_exit(10);
    if (::openat(folder.get(), "file", O_RDONLY) < 0) ::_exit(11);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(status_of(folder_ / "file").st_mode & 07777, 01777U);
}

}  // namespace
}  // namespace hive::priv
