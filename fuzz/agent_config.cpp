// The agent's configuration: every accepted file keeps the promises that the other rooms build on.
#include "config/agent_config.h"

#include "base/strings.h"
#include "config/pattern.h"
#include "config/pattern_probe.h"
#include "config/pattern_samples.h"
#include "config/program_kind.h"
#include "fuzz_target.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hive;
  Result<config::AgentConfig> loaded = config::parse_agent_config(fuzz::as_text(data, size), "/etc/agent.json");
  if (!loaded) {
    CHECK(loaded.error().message.starts_with("/etc/agent.json"));
    return 0;
  }
  CHECK(check_agent_id(loaded->agent_id).has_value());
  CHECK(!loaded->gateways.empty());
  CHECK(!loaded->private_key_path.empty());
  for (const config::GatewayAddress& address : loaded->gateways) {
    CHECK(config::parse_gateway_address(address.to_string()).has_value());
  }
  for (const std::string& root : loaded->file_read_roots) {
    CHECK(root.starts_with('/') && !root.contains("/../"));
  }
  for (const config::AllowedCommand& command : loaded->allowed_commands) {
    CHECK(!command.name.empty() && (command.name.starts_with('/') || !command.name.contains('/')));
    CHECK(command.timeout.count() > 0 && command.max_output_bytes > 0);
    Result<config::Pattern> pattern = config::Pattern::compile(command.args_regex);
    CHECK(pattern.has_value());
    std::optional<config::PatternOutline> outline = config::outline_pattern(command.args_regex);
    if (!outline) continue;
    CHECK(outline->samples.size() <= 64);
    for (const config::Finding& finding :
         config::probe_pattern(*pattern, outline->samples, config::program_name(command.name))) {
      CHECK(pattern->admits(finding.example));
    }
    (void)config::review_anchors(*outline);
  }
  return 0;
}
