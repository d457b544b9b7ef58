#include "forwarder/position.h"

#include <cerrno>

#include <unistd.h>

#include "base/file.h"
#include "protocol/json.h"

namespace hive::forwarder {

namespace {
constexpr size_t max_position_bytes = 4096;
}

Result<std::optional<Position>> load_position(const std::string& path) {
  if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::nullopt;
  const std::string text = TRY(read_file(path, max_position_bytes));
  auto members = json::parse_object(text);
  if (members) {
    auto cursor = json::find(*members, "cursor").and_then(json::decode_string);
    auto boot_id = json::find(*members, "boot_id").and_then(json::decode_string);
    auto monotonic = json::find(*members, "monotonic_us").and_then(json::decode_integer);
    if (cursor && !cursor->empty() && boot_id && monotonic && *monotonic >= 0) {
      return Position{.cursor = *cursor, .boot_id = *boot_id, .monotonic_us = static_cast<std::uint64_t>(*monotonic)};
    }
  }
  return fail(ErrorCode::corrupt, "{}: no position in a journal; remove it to send the whole journal again", path);
}

Result<void> save_position(const std::string& path, const Position& position) {
  return write_file_atomically(
      path,
      fmt::format("{{\"cursor\": {}, \"boot_id\": {}, \"monotonic_us\": {}}}\n", json::encode_string(position.cursor),
                  json::encode_string(position.boot_id), position.monotonic_us),
      0600);
}

}  // namespace hive::forwarder
