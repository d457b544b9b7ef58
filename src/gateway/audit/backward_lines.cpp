#include "gateway/audit/backward_lines.h"

#include <algorithm>
#include <cerrno>

#include <unistd.h>

#include "gateway/audit/entry.h"

namespace hive::audit {

namespace {

constexpr std::uint64_t piece_bytes = 65536;

Result<std::string> read_exactly(int fd, const std::string& name, std::uint64_t offset, std::uint64_t size) {
  std::string bytes(size, '\0');
  size_t done = 0;
  while (done < size) {
    ssize_t count = ::pread(fd, bytes.data() + done, size - done, static_cast<off_t>(offset + done));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, name));
    if (count == 0) return fail(ErrorCode::io, "{}: it became shorter while it was read", name);
    done += static_cast<size_t>(count);
  }
  return bytes;
}

}  // namespace

Result<std::optional<std::string_view>> BackwardLines::next() {
  if (rest_ == 0 && begin_ == 0) return std::nullopt;
  if (rest_ == 0) TRY(read_more());
  size_t end = rest_ - 1;  // of the line, at its newline
  while (true) {
    size_t newline = end == 0 ? std::string::npos : buffer_.rfind('\n', end - 1);
    if (newline != std::string::npos || begin_ == 0) {
      size_t begin = newline == std::string::npos ? 0 : newline + 1;
      rest_ = begin;
      return std::string_view(buffer_).substr(begin, end - begin);
    }
    if (end > max_line_bytes) {
      return fail(ErrorCode::corrupt, "{}: the line before byte {} is longer than {} bytes", name_, begin_ + end,
                  max_line_bytes);
    }
    buffer_.resize(rest_);
    size_t before = buffer_.size();
    TRY(read_more());
    end += buffer_.size() - before;
  }
}

Result<void> BackwardLines::read_more() {
  buffer_.resize(rest_);
  // Larger steps for longer lines keep the copying linear.
  std::uint64_t size = std::min<std::uint64_t>(begin_, std::max<std::uint64_t>(piece_bytes, buffer_.size()));
  std::string front = TRY(read_exactly(fd_, name_, begin_ - size, size));
  buffer_.insert(0, front);
  begin_ -= size;
  rest_ = buffer_.size();
  return {};
}

Result<std::uint64_t> last_line_end(int fd, const std::string& name, std::uint64_t size) {
  std::uint64_t end = size;
  while (end > 0 && size - end <= max_line_bytes) {
    std::uint64_t begin = end - std::min(end, piece_bytes);
    std::string bytes = TRY(read_exactly(fd, name, begin, end - begin));
    size_t newline = bytes.rfind('\n');
    if (newline != std::string::npos) return begin + newline + 1;
    end = begin;
  }
  return 0;
}

}  // namespace hive::audit
