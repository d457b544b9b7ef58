#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "forwarder/journal_entry.h"

/// The logs signal of OTLP/HTTP in its JSON encoding (OpenTelemetry Protocol specification 1.x, "JSON Protobuf
/// Encoding").
namespace hive::forwarder {

/// Who the entries are from.
struct Resource {
  std::string service_name;
  std::string host_name;
  std::string machine_id;
};

/// The body of a request for /v1/logs. Every record carries `log.record.uid`, which follows from the entry's place in
/// the journal alone: a record that is sent twice after a crash can be known as the same one.
std::string export_request(const Resource& resource, std::span<const JournalEntry> entries, WallTime now);

/// The id of an entry: 32 hexadecimal digits.
std::string record_uid(const JournalEntry& entry);

/// The severity number of OpenTelemetry for a priority of syslog.
int severity_number(int priority);

/// How many records an answer says it has not taken (partialSuccess.rejectedLogRecords); 0 for anything else.
std::int64_t rejected_records(std::string_view answer);

}  // namespace hive::forwarder
