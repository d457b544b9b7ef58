#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "gateway/audit/record.h"

/// The form of an entry on disk: one line of JSON with its keys in a fixed order. The bytes of the line are what the
/// Merkle tree holds, so nothing ever has to be serialised a second time.
namespace hive::audit {

/// The keys of an entry in the order in which they stand in the line; empty ones are left out.
enum class Field : std::uint8_t {
  seq,
  time,
  kind,
  call_id,
  request_id,
  principal,
  role,
  surface,
  on_behalf_of,
  action,
  agent,
  tool,
  tier,
  arguments,
  arguments_bytes,
  arguments_sha256,
  after_untrusted_text,
  outcome,
  reason,
  detail,
  duration_us,
};
inline constexpr size_t field_count = 21;

std::string_view to_string(Field field);
std::string_view to_string(RecordKind kind);

/// No line of a log is longer; the writer's limits keep entries below it.
inline constexpr size_t max_line_bytes = size_t{1} << 20;

/// The largest value that counts for LogOptions::max_arguments_bytes.
inline constexpr size_t max_arguments_limit = 131072;

/// Appends what stands behind the sequence number: from the comma to the closing brace, without newline. Every text is
/// bounded; arguments longer than `max_arguments_bytes` are cut between two characters, and their whole size and
/// SHA-256 stand beside them.
void append_entry_body(std::string& out, const Record& record, WallTime time, size_t max_arguments_bytes);

/// Appends the start of the line, to be followed by a body.
void append_entry_head(std::string& out, std::uint64_t seq);

/// A line taken apart; points into the line.
class EntryView {
 public:
  /// Accepts exactly one flat object with the known keys in their order and no key twice, so that every JSON reader
  /// sees the same values. Up to 32 unknown keys are allowed, so that an older verifier reads a newer log; no key may
  /// have escapes. The reason of a refusal is one short phrase.
  static Result<EntryView> parse(std::string_view line);

  [[nodiscard]] std::uint64_t seq() const { return seq_; }
  [[nodiscard]] bool has(Field field) const { return !raw(field).empty(); }
  /// The raw JSON of the value; empty if the key is absent.
  [[nodiscard]] std::string_view raw(Field field) const { return raw_[static_cast<size_t>(field)]; }
  /// The decoded text of a string, the digits of a number; empty if the key is absent.
  [[nodiscard]] std::string text(Field field) const;
  /// Whether the decoded text is `expected`; does not allocate unless the value has escapes.
  [[nodiscard]] bool equals(Field field, std::string_view expected) const;

 private:
  std::uint64_t seq_ = 0;
  std::array<std::string_view, field_count> raw_;
};

}  // namespace hive::audit
