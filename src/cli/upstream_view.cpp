#include "cli/upstream_view.h"

#include "cli/json_fields.h"

namespace hive::cli {

Result<UpstreamView> parse_upstream(std::string_view raw) {
  JsonFields fields = TRY(JsonFields::parse(raw, "upstream entry"));
  UpstreamView upstream;
  upstream.name = fields.text("name");
  upstream.url = fields.text("url");
  upstream.status = fields.text("status");
  upstream.transport = fields.text("transport");
  upstream.since = fields.text("since");
  upstream.tools = fields.number("tools");
  upstream.held_back = fields.number("held_back");
  upstream.notes = fields.texts("notes");
  return upstream;
}

Result<std::vector<HeldBackView>> parse_held_back(std::string_view body) {
  std::vector<HeldBackView> tools;
  JsonFields answer = TRY(JsonFields::parse(body, "upstreams"));
  for (std::string_view raw : answer.elements("upstreams")) {
    JsonFields upstream = TRY(JsonFields::parse(raw, "upstream entry"));
    for (std::string_view raw_tool : upstream.elements("held_back_tools")) {
      JsonFields tool = TRY(JsonFields::parse(raw_tool, "held-back tool"));
      tools.push_back({.upstream = upstream.text("name"),
                       .tool = tool.text("tool"),
                       .current_sha256 = tool.text("current_sha256"),
                       .current = std::string(tool.raw("current")),
                       .accepted_sha256 = tool.text("accepted_sha256"),
                       .accepted = std::string(tool.raw("accepted"))});
    }
  }
  return tools;
}

}  // namespace hive::cli
