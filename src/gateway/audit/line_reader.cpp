#include "gateway/audit/line_reader.h"

#include <cerrno>
#include <cstring>

#include <unistd.h>

#include "gateway/audit/entry.h"

namespace hive::audit {

namespace {
constexpr size_t piece_bytes = 262144;  // stays in the second-level cache
}

Result<std::optional<std::string_view>> LineReader::next() {
  size_t searched = at_;
  while (true) {
    const void* found = std::memchr(buffer_.data() + searched, '\n', buffer_.size() - searched);
    if (found != nullptr) {
      auto end = static_cast<size_t>(static_cast<const char*>(found) - buffer_.data());
      std::string_view line(buffer_.data() + at_, end - at_);
      offset_ += line.size() + 1;
      at_ = end + 1;
      return line;
    }
    if (buffer_.size() - at_ > max_line_bytes) {
      return fail(ErrorCode::corrupt, "{}: the line at byte {} is longer than {} bytes", name_, offset_,
                  max_line_bytes);
    }
    searched = buffer_.size() - at_;
    if (!TRY(read_more())) return std::nullopt;
  }
}

Result<bool> LineReader::read_more() {
  buffer_.erase(0, at_);
  at_ = 0;
  size_t kept = buffer_.size();
  buffer_.resize(kept + piece_bytes);
  ssize_t count = 0;
  do {
    count = ::pread(fd_, buffer_.data() + kept, piece_bytes, static_cast<off_t>(offset_ + kept));
  } while (count < 0 && errno == EINTR);
  int error = errno;
  buffer_.resize(kept + (count > 0 ? static_cast<size_t>(count) : 0));
  if (count < 0) return std::unexpected(system_error(error, name_));
  return count > 0;
}

}  // namespace hive::audit
