#include "forwarder/otlp.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "crypto/sha256.h"
#include "protocol/json.h"

namespace hive::forwarder {

namespace {

constexpr size_t uid_bytes = 16;

// Numbers of OpenTelemetry's log data model for syslog's eight priorities, as that document maps them.
constexpr std::array<int, 8> severities = {21, 19, 18, 17, 13, 10, 9, 5};
constexpr std::array<std::string_view, 8> severity_names = {"emerg",   "alert",  "crit", "err",
                                                            "warning", "notice", "info", "debug"};

size_t index_of(int priority) {
  return static_cast<size_t>(std::clamp(priority, 0, 7));
}

void add_attribute(std::string& out, std::string_view key, std::string_view value) {
  if (value.empty()) return;
  if (!out.empty()) out += ',';
  out += fmt::format(R"({{"key":"{}","value":{{"stringValue":{}}}}})", key, json::encode_string(value));
}

std::string record_of(const JournalEntry& entry, std::uint64_t now_ns) {
  std::string attributes;
  add_attribute(attributes, "log.record.uid", record_uid(entry));
  add_attribute(attributes, "systemd.unit", entry.unit);
  add_attribute(attributes, "syslog.identifier", entry.identifier);
  add_attribute(attributes, "process.pid", entry.pid);
  // 64-bit integers are strings in this encoding.
  return fmt::format(R"({{"timeUnixNano":"{}","observedTimeUnixNano":"{}","severityNumber":{},"severityText":"{}",)"
                     R"("body":{{"stringValue":{}}},"attributes":[{}]}})",
                     entry.realtime_us * 1000, now_ns, severity_number(entry.priority),
                     severity_names[index_of(entry.priority)], json::encode_string(entry.message), attributes);
}

}  // namespace

int severity_number(int priority) {
  return severities[index_of(priority)];
}

std::string record_uid(const JournalEntry& entry) {
  auto digest = crypto::sha256(entry.cursor);
  return to_hex(std::span(digest).first(uid_bytes));
}

std::string export_request(const Resource& resource, std::span<const JournalEntry> entries, WallTime now) {
  const auto now_ns =
      static_cast<std::uint64_t>(std::chrono::duration_cast<std::chrono::nanoseconds>(now.time_since_epoch()).count());
  std::string attributes;
  add_attribute(attributes, "service.name", resource.service_name);
  add_attribute(attributes, "host.name", resource.host_name);
  add_attribute(attributes, "host.id", resource.machine_id);
  std::string text = fmt::format(R"({{"resourceLogs":[{{"resource":{{"attributes":[{}]}},"scopeLogs":[{{"scope":)"
                                 R"({{"name":"hive-journal-forwarder","version":"{}"}},"logRecords":[)",
                                 attributes, HIVE_VERSION);
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i > 0) text += ',';
    text += record_of(entries[i], now_ns);
  }
  return text + "]}]}]}";
}

std::int64_t rejected_records(std::string_view answer) {
  auto members = json::parse_object(answer);
  if (!members) return 0;
  auto partial = json::find(*members, "partialSuccess");
  if (!partial || !json::is_object(*partial)) return 0;
  auto fields = json::parse_object(*partial);
  auto raw = fields ? json::find(*fields, "rejectedLogRecords") : std::nullopt;
  if (!raw) return 0;
  if (auto text = json::decode_string(*raw)) return parse_int64(*text).value_or(0);
  return json::decode_integer(*raw).value_or(0);
}

}  // namespace hive::forwarder
