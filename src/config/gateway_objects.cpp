#include "config/gateway_objects.h"

#include "base/strings.h"
#include "config/names.h"

namespace hive::config {

namespace {

/// An object that is checked and not kept.
struct Entry {};

void check_entry_agent(Reader& reader, const Value& value, Entry& /*entry*/) {
  std::optional<std::string> id = reader.string(value);
  if (!id) return;
  if (Result<void> checked = check_agent_id(*id); !checked) reader.problem(value, checked.error().message);
}

void check_entry_text(Reader& reader, const Value& value, Entry& /*entry*/) {
  (void)reader.non_empty_string(value);
}

void check_percent(Reader& reader, const Value& value, Entry& /*entry*/) {
  (void)reader.number(value, 0, 100);
}

constexpr Key<Entry> scheduled_task_keys[] = {
    {{.name = "name", .type = "string", .default_value = "", .required = true}, check_entry_text},
    {{.name = "agent_id", .type = "string", .default_value = "", .required = true}, check_entry_agent},
    {{.name = "prompt", .type = "string", .default_value = "", .required = true}, check_entry_text},
    {{.name = "interval_seconds", .type = "whole number, 1 to 31536000", .default_value = "", .required = true},
     check_integer<1, 31'536'000>},
};

constexpr Key<Entry> threshold_keys[] = {
    {{.name = "cpu_percent", .type = "number, 0 to 100", .default_value = "0 (off)"}, check_percent},
    {{.name = "mem_percent", .type = "number, 0 to 100", .default_value = "0 (off)"}, check_percent},
    {{.name = "disk_percent", .type = "number, 0 to 100", .default_value = "0 (off)"}, check_percent},
};

void check_each(Reader& reader, const Value& list, std::span<const Key<Entry>> keys) {
  for (const Value& element : reader.elements(list)) {
    Entry entry;
    read_members<Entry>(reader, element, keys, entry);
  }
}

void append(std::vector<PlacedKey>& keys, std::string_view prefix, std::span<const Key<Entry>> rows) {
  for (const Key<Entry>& row : rows) {
    keys.push_back({fmt::format("{}.{}", prefix, row.info.name), row.info});
  }
}

}  // namespace

void check_scheduled_tasks(Reader& reader, const Value& value, GatewayDraft& /*draft*/) {
  check_each(reader, value, scheduled_task_keys);
}

void check_alert_thresholds(Reader& reader, const Value& value, GatewayDraft& /*draft*/) {
  Entry entry;
  read_members<Entry>(reader, value, threshold_keys, entry);
}

void append_object_keys(std::vector<PlacedKey>& keys) {
  append(keys, "scheduled_tasks[]", scheduled_task_keys);
  append(keys, "alert_thresholds", threshold_keys);
}

}  // namespace hive::config
