#include "gateway/surfaces/rest/upstream_json.h"

#include "base/clock.h"
#include "gateway/surfaces/rest/object_writer.h"

namespace hive::rest {

void append_upstream(std::string& out, const upstreams::UpstreamStatus& status, std::string_view raw_held_back) {
  if (!out.ends_with('[')) out += ',';
  out += '{';
  ObjectWriter object(out);
  object.text("name", status.name)
      .text("url", status.url)
      .text("status", status.state)
      .text("prefix", status.prefix)
      .text("transport", status.transport)
      .text("since", format_rfc3339(status.since))
      .text("revision", status.revision)
      .text("server_name", status.server_name)
      .text("server_version", status.server_version)
      .number("tools", status.tools)
      .number("held_back", status.held_back)
      .number("restarts", status.restarts)
      .number("calls_in_flight", status.calls_in_flight)
      .number("sessions", status.sessions)
      .texts("notes", status.notes);
  if (!raw_held_back.empty()) object.raw("held_back_tools", raw_held_back);
  out += '}';
}

}  // namespace hive::rest
