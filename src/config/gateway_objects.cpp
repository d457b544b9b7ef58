#include "config/gateway_objects.h"

#include <set>

#include "base/strings.h"
#include "config/names.h"

namespace hive::config {

namespace {

/// An object that is checked and not kept; what checks across its keys need.
struct Entry {
  std::string name;
  std::string transport;
  bool has_url = false;
  bool has_command = false;
};

void check_entry_url(Reader& reader, const Value& value, Entry& entry) {
  entry.has_url = says_something(value.raw);
  if (entry.has_url) read_url(reader, value);
}

void check_entry_command(Reader& reader, const Value& value, Entry& entry) {
  entry.has_command = says_something(value.raw);
  (void)reader.string(value);
}

void check_entry_transport(Reader& reader, const Value& value, Entry& entry) {
  static constexpr std::string_view transports[] = {"stdio", "sse", "http"};
  if (auto name = reader.one_of(value, transports)) entry.transport = *std::move(name);
}

void check_entry_agent(Reader& reader, const Value& value, Entry& /*entry*/) {
  std::optional<std::string> id = reader.string(value);
  if (!id) return;
  if (Result<void> checked = check_agent_id(*id); !checked) reader.problem(value, checked.error().message);
}

// Upstream names are prefixes of tool names, as agent ids are, and share their rules.
void check_server_name(Reader& reader, const Value& value, Entry& entry) {
  std::optional<std::string> name = reader.string(value);
  if (!name) return;
  if (Result<void> checked = check_agent_id(*name); !checked) reader.problem(value, checked.error().message);
  entry.name = *std::move(name);
}

void check_entry_text(Reader& reader, const Value& value, Entry& /*entry*/) {
  (void)reader.non_empty_string(value);
}

void check_percent(Reader& reader, const Value& value, Entry& /*entry*/) {
  (void)reader.number(value, 0, 100);
}

constexpr Key<Entry> upstream_server_keys[] = {
    {{.name = "name", .type = "string", .default_value = "", .required = true}, check_server_name},
    {{.name = "url", .type = "URL", .default_value = "", .required = true}, check_entry_url},
};

constexpr Key<Entry> external_server_keys[] = {
    {{.name = "name", .type = "string", .default_value = "", .required = true}, check_server_name},
    {{.name = "transport", .type = "stdio, sse or http", .default_value = "", .required = true}, check_entry_transport},
    {{.name = "command", .type = "string", .default_value = ""}, check_entry_command},
    {{.name = "args", .type = "list of strings", .default_value = "[]"}, check_string_list},
    {{.name = "env", .type = "object of strings", .default_value = "{}", .secret = true}, check_optional_secret_map},
    {{.name = "url", .type = "URL", .default_value = ""}, check_entry_url},
    {{.name = "auth_token", .type = "string", .default_value = "", .secret = true}, check_optional_secret},
};

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

template <class Check>
void check_each(Reader& reader, const Value& list, std::span<const Key<Entry>> keys, Check check) {
  for (const Value& element : reader.elements(list)) {
    Entry entry;
    read_members<Entry>(reader, element, keys, entry);
    check(element, entry);
  }
}

void append(std::vector<PlacedKey>& keys, std::string_view prefix, std::span<const Key<Entry>> rows) {
  for (const Key<Entry>& row : rows) {
    keys.push_back({fmt::format("{}.{}", prefix, row.info.name), row.info});
  }
}

}  // namespace

void check_upstream_servers(Reader& reader, const Value& value, GatewayDraft& draft) {
  check_each(reader, value, upstream_server_keys, [&](const Value& place, const Entry& entry) {
    if (!entry.name.empty() && !draft.upstream_names.insert(entry.name).second) {
      reader.problem(place, fmt::format("another upstream server is called {} as well", quote(entry.name)));
    }
  });
}

void check_external_mcp_servers(Reader& reader, const Value& value, GatewayDraft& draft) {
  check_each(reader, value, external_server_keys, [&](const Value& place, const Entry& entry) {
    if (!entry.name.empty() && !draft.upstream_names.insert(entry.name).second) {
      reader.problem(place, fmt::format("another upstream server is called {} as well", quote(entry.name)));
    }
    if (entry.transport == "stdio" && !entry.has_command) reader.problem(place, "command is not set");
    if ((entry.transport == "sse" || entry.transport == "http") && !entry.has_url) {
      reader.problem(place, "url is not set");
    }
  });
}

void check_scheduled_tasks(Reader& reader, const Value& value, GatewayDraft& /*draft*/) {
  check_each(reader, value, scheduled_task_keys, [](const Value&, const Entry&) {});
}

void check_alert_thresholds(Reader& reader, const Value& value, GatewayDraft& /*draft*/) {
  Entry entry;
  read_members<Entry>(reader, value, threshold_keys, entry);
}

void append_object_keys(std::vector<PlacedKey>& keys) {
  append(keys, "upstream_servers[]", upstream_server_keys);
  append(keys, "external_mcp_servers[]", external_server_keys);
  append(keys, "scheduled_tasks[]", scheduled_task_keys);
  append(keys, "alert_thresholds", threshold_keys);
}

}  // namespace hive::config
