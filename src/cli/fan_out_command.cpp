#include "cli/fan_out_command.h"

#include <algorithm>

#include "base/strings.h"
#include "cli/call_arguments.h"
#include "cli/call_report.h"
#include "cli/fan_out_report.h"
#include "cli/json_fields.h"
#include "cli/json_text.h"
#include "cli/prompt.h"
#include "protocol/json_object.h"

namespace hive::cli {

namespace {

constexpr std::chrono::milliseconds default_deadline = std::chrono::minutes(10);
constexpr std::size_t max_shown_agents = 20;

/// Of an agent out of the caller's reach.
constexpr std::string_view unknown_state = "-";

std::string_view state_of(std::string_view online) {
  if (online.empty()) return unknown_state;
  return online == "true" ? "online" : "offline";
}

/// What a dry run said.
struct Preview {
  struct Agent {
    std::string id;
    std::string_view state = unknown_state;
    std::string verdict;
    std::string reason;
    std::string message;
  };
  std::string tier;
  std::size_t left_out = 0;
  std::vector<Agent> agents;

  static Result<Preview> parse(std::string_view body) {
    Preview preview;
    JsonFields fields = TRY(JsonFields::parse(body, "answer of the dry run"));
    preview.tier = fields.text("tier");
    preview.left_out = static_cast<std::size_t>(std::max<std::int64_t>(fields.number("left_out"), 0));
    for (std::string_view raw : fields.elements("agents")) {
      JsonFields agent = TRY(JsonFields::parse(raw, "agent"));
      preview.agents.push_back({.id = agent.text("agent"),
                                .state = state_of(agent.raw("online")),
                                .verdict = agent.text("verdict"),
                                .reason = agent.text("reason"),
                                .message = agent.text("message")});
    }
    return preview;
  }

  [[nodiscard]] std::vector<std::string> ids() const {
    std::vector<std::string> ids;
    for (const Agent& agent : agents)
      ids.push_back(agent.id);
    return ids;
  }
};

std::string texts_json(const std::vector<std::string>& texts) {
  std::string array = "[";
  for (const std::string& text : texts) {
    if (array.size() > 1) array += ',';
    json::append_string(array, text);
  }
  return array + "]";
}

/// Everything but whether it is a dry run.
std::string request_body(const std::string& tool, std::string_view arguments, const FanOutOptions& options,
                         const GlobalOptions& global) {
  std::string body = "{\"tool\":" + json::encode_string(tool) + ",\"arguments\":" + std::string(arguments);
  if (!options.agents.empty()) body += ",\"agents\":" + texts_json(options.agents);
  if (!options.tags.empty()) body += ",\"tags\":" + texts_json(options.tags);
  if (options.all) body += ",\"all\":true";
  if (options.with_offline) body += ",\"offline\":true";
  if (options.concurrency) body += fmt::format(",\"concurrency\":{}", *options.concurrency);
  if (options.deadline) body += fmt::format(",\"deadline_ms\":{}", options.deadline->count());
  if (options.stop_after > 0) body += fmt::format(",\"stop_after_errors\":{}", options.stop_after);
  if (options.wait_online.count() > 0) body += fmt::format(",\"wait_seconds\":{}", options.wait_online.count());
  if (global.timeout) body += fmt::format(",\"timeout_ms\":{}", global.timeout->count());
  return body;
}

std::expected<Preview, Failure> preview_of(const GatewayClient& gateway, std::string body) {
  auto answer = gateway.post_json("/api/fan-out", std::move(body) + ",\"dry_run\":true}");
  if (!answer) return std::unexpected(std::move(answer.error()));
  auto preview = Preview::parse(*answer);
  if (!preview) return std::unexpected(Failure{ExitCode::error, preview.error().message});
  return *std::move(preview);
}

/// The words get their types from the tool of the first agent that has it.
std::expected<std::string, Failure> typed_arguments(const GatewayClient& gateway, const CallPlan& plan,
                                                    const Preview& preview, bool may_wait) {
  auto found = std::ranges::find_if(
      preview.agents, [](const Preview::Agent& agent) { return agent.state == "online" && agent.verdict != "deny"; });
  if (found == preview.agents.end()) {
    // Whoever is refused on every agent gets the gates' reasons, though the words have no types.
    if (std::ranges::all_of(preview.agents, [](const auto& agent) { return agent.verdict == "deny"; }))
      return plan.base;
    if (may_wait || !needs_schema(plan.words)) found = preview.agents.begin();
  }
  if (found == preview.agents.end()) {
    return std::unexpected(Failure{
        .code = ExitCode::unreachable,
        .message = "none of the agents is online, so key=value words have no types and nothing was sent (key:=json and "
                   "--arguments need none)",
        .outcome = protocol::Outcome::denied,
        .reason = "agent_offline"});
  }
  CallPlan of_agent = plan;
  of_agent.tool = found->id + "__" + plan.tool;
  of_agent.may_wait = may_wait;
  return planned_arguments(gateway, of_agent, "call");
}

ExitCode show_preview(Context& context, const std::string& tool, const Preview& preview) {
  std::size_t refused = 0;
  std::string json;
  Table table({"AGENT", "STATE", "VERDICT", "WHY"});
  for (const Preview::Agent& agent : preview.agents) {
    if (agent.verdict == "deny") ++refused;
    json::ObjectText line;
    line.text("agent", agent.id);
    if (agent.state != unknown_state) line.boolean("online", agent.state == "online");
    line.text("verdict", agent.verdict).text("reason", agent.reason).text("message", agent.message);
    json += json_line(line.take());
    table.add(
        {agent.id, std::string(agent.state), agent.verdict, agent.message.empty() ? agent.reason : agent.message});
  }
  context.output.write(context.format.json ? json : table.render(context.output.width(), context.format.color));
  std::string note =
      fmt::format("myrmex: {} of tier {} on {} agent{}, nothing was run", escape_for_terminal(tool),
                  escape_for_terminal(preview.tier), preview.agents.size(), preview.agents.size() == 1 ? "" : "s");
  if (refused > 0) note += fmt::format("; {} would be refused", refused);
  if (preview.left_out > 0) note += fmt::format("; {} offline left out", preview.left_out);
  context.output.note(note);
  return refused == preview.agents.size() ? ExitCode::denied : ExitCode::success;
}

/// Whether to go on with what changes more than one agent; otherwise why not.
std::optional<Failure> ask_to_go_on(Context& context, const std::string& tool, const Preview& preview) {
  if (preview.tier == "read" || preview.agents.size() < 2) return std::nullopt;
  std::string what = fmt::format("{} is of tier {} and would run on {} agents", escape_for_terminal(tool),
                                 escape_for_terminal(preview.tier), preview.agents.size());
  if (!can_ask()) {
    return Failure{.code = ExitCode::usage,
                   .message = "call: " + what +
                              ", and nobody can be asked here: say --yes, or look with --dry-run; "
                              "nothing was sent",
                   .outcome = protocol::Outcome::denied,
                   .reason = "not_confirmed"};
  }
  std::vector<std::string> ids = preview.ids();
  std::size_t more = ids.size() > max_shown_agents ? ids.size() - max_shown_agents : 0;
  ids.resize(ids.size() - more);
  context.output.note(fmt::format("{}: {}{}", what, escape_for_terminal(join(ids, ", ")),
                                  more > 0 ? fmt::format(" and {} more", more) : ""));
  auto answer = ask_line("Go on? [y/N] ", true, context.cancel_fd);
  if (!answer) return Failure{ExitCode::interrupted, answer.error().message};
  std::string_view word = trim(*answer);
  if (word == "y" || word == "Y" || word == "yes") return std::nullopt;
  return Failure{.code = ExitCode::error,
                 .message = "not confirmed; nothing was sent",
                 .outcome = protocol::Outcome::denied,
                 .reason = "not_confirmed"};
}

std::size_t width_of(const std::vector<std::string>& ids) {
  std::size_t width = 8;
  for (const std::string& id : ids)
    width = std::max(width, std::min<std::size_t>(id.size(), 40));
  return width;
}

ExitCode run_stream(Context& context, const GatewayClient& gateway, const FanOutOptions& options, std::string body,
                    std::size_t agent_width) {
  FanOutReport report(context, {.group = options.group, .agent_width = agent_width});
  GatewayClient::CallRequest request{
      .path = "/api/fan-out",
      .body = std::move(body),
      .timeout = options.deadline.value_or(default_deadline) + context.options.timeout.value_or(default_timeout),
      .on_event = [&report](std::string_view name, std::string_view data) { report.take(name, data); }};
  request.max_bytes = std::size_t{1} << 40;  // results are printed and not kept
  auto response = gateway.call(std::move(request));
  if (!response) {
    if (response.error().code == ExitCode::interrupted) return report.interrupted();
    return fail_call(context, response.error());
  }
  if (response->status != 200) return fail_call(context, gateway.failure_from(*response, true));
  return report.finish();
}

}  // namespace

ExitCode run_fan_out(Context& context, const CallWords& words, const FanOutOptions& options) {
  if (options.group && context.format.json) {
    return fail_call(context, {ExitCode::usage, "call: --group is for people; -o json has every result on a line"});
  }
  auto plan = make_fan_out_plan(words, "call");
  if (!plan) return fail_call(context, {ExitCode::usage, plan.error().message});
  auto gateway = context.gateway();
  if (!gateway) return fail_call(context, gateway.error());

  FanOutOptions asked = options;
  std::string arguments = plan->base;
  std::size_t agent_width = width_of(options.agents);
  if (!options.yes || options.dry_run || !plan->words.empty()) {
    auto preview = preview_of(*gateway, request_body(plan->tool, plan->base, options, context.options));
    if (!preview) return fail_call(context, preview.error());
    if (options.dry_run && plan->words.empty()) return show_preview(context, plan->tool, *preview);
    auto typed = typed_arguments(*gateway, *plan, *preview, options.wait_online.count() > 0);
    if (!typed) return fail_call(context, typed.error());
    arguments = *std::move(typed);
    if (arguments != plan->base) {
      // Tier and scope may depend on the arguments.
      preview = preview_of(*gateway, request_body(plan->tool, arguments, options, context.options));
      if (!preview) return fail_call(context, preview.error());
    }
    if (options.dry_run) return show_preview(context, plan->tool, *preview);
    if (!options.yes) {
      if (auto refused = ask_to_go_on(context, plan->tool, *preview)) return fail_call(context, *refused);
      // Whoever has agreed has agreed to these.
      if (preview->tier != "read") {
        asked.agents = preview->ids();
        asked.tags.clear();
        asked.all = false;
      }
    }
    agent_width = width_of(preview->ids());
  }
  return run_stream(context, *gateway, options, request_body(plan->tool, arguments, asked, context.options) + "}",
                    agent_width);
}

}  // namespace hive::cli
