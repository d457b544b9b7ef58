#include "agent/resident_code.h"

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/log.h"
#include "base/result.h"
#include "base/strings.h"
#include "base/unique_fd.h"

namespace hive::agent {

namespace {

struct Mapping {
  std::uintptr_t begin = 0;
  std::uintptr_t end = 0;
};

std::string own_mappings() {
  UniqueFd file(::open("/proc/self/smaps", O_RDONLY | O_CLOEXEC));
  std::string text;
  char buffer[4096];
  while (file) {
    ssize_t count = ::read(file.get(), buffer, sizeof(buffer));
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

// The first line about a mapping, "begin-end r-xp offset device inode path", see proc(5); nullopt for the lines about
// its details and for mappings that can be written or are no file.
std::optional<Mapping> parse_read_only_file(std::string_view line) {
  size_t dash = line.find('-');
  size_t space = line.find(' ');
  if (dash == std::string_view::npos || space == std::string_view::npos || dash > space) return std::nullopt;
  std::string_view rest = line.substr(space + 1);
  if ((!rest.starts_with("r-xp ") && !rest.starts_with("r--p ")) || rest.find(" /") == std::string_view::npos)
    return std::nullopt;
  Mapping mapping;
  auto begin = std::from_chars(line.data(), line.data() + dash, mapping.begin, 16);
  auto end = std::from_chars(line.data() + dash + 1, line.data() + space, mapping.end, 16);
  if (begin.ec != std::errc() || end.ec != std::errc() || mapping.begin >= mapping.end) return std::nullopt;
  return mapping;
}

}  // namespace

void release_start_code() {
  std::string text = own_mappings();
  std::optional<Mapping> mapping;
  for (std::string_view line : split(text, '\n')) {
    constexpr std::string_view anonymous = "Anonymous:";
    if (line.starts_with(anonymous)) {
      // Pages of our own, which the linker relocated before it made them read-only, cannot be read from the file again.
      bool only_the_file = trim(line.substr(anonymous.size())) == "0 kB";
      if (!mapping || !only_the_file) continue;
      // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel names our memory in text.
      if (::madvise(reinterpret_cast<void*>(mapping->begin), mapping->end - mapping->begin, MADV_DONTNEED) != 0) {
        log::debug("code pages stay", {{"reason", system_error(errno, "madvise").message}});
      }
    } else if (!line.empty() && (line[0] < 'A' || line[0] > 'Z')) {
      mapping = parse_read_only_file(line);
    }
  }
}

}  // namespace hive::agent
