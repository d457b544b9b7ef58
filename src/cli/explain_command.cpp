#include "cli/explain_command.h"

#include "base/strings.h"
#include "cli/json_text.h"

namespace hive::cli {

namespace {

std::string_view summary_of(std::string_view verdict) {
  if (verdict == "allow") return "would run";
  if (verdict == "deny") return "would be denied";
  if (verdict == "ask") return "would wait for the approval of other people";
  return "cannot be told without running it";
}

Style style_of(std::string_view verdict) {
  if (verdict == "allow") return Style::good;
  return verdict == "deny" ? Style::bad : Style::warning;
}

std::string message_of(const GateView& gate) {
  if (gate.message.empty()) return gate.reason;
  return gate.reason.empty() ? gate.message : fmt::format("{} ({})", gate.message, gate.reason);
}

std::string as_text(const ExplanationView& explanation, const std::string& tool, const Context& context) {
  bool color = context.format.color;
  std::string text = fmt::format("{} {}", escape_for_terminal(tool),
                                 styled(summary_of(explanation.verdict), style_of(explanation.verdict), color));
  if (!explanation.reason.empty()) text += " (" + escape_for_terminal(explanation.reason) + ")";
  text += fmt::format("\nIts tier is {}: {}\n\n", escape_for_terminal(explanation.tier),
                      escape_for_terminal(explanation.tier_rule));
  Table table({"GATE", "VERDICT", "WHY"});
  for (const GateView& gate : explanation.gates) {
    std::string message = message_of(gate);
    table.add({gate.gate, gate.verdict, gate.rule.empty() ? message : gate.rule});
    if (!gate.rule.empty() && !message.empty()) table.add({"", "", message});
  }
  // Rules name a file and a line: cutting them would hide what the command is for.
  return text + table.render(0, color);
}

}  // namespace

ExitCode run_explain(Context& context, const ExplainOptions& options) {
  auto plan = make_call_plan(options.call, "explain");
  if (!plan) return context.fail_with({ExitCode::usage, plan.error().message});
  auto gateway = context.gateway();
  if (!gateway) return context.fail_with(gateway.error());
  auto arguments = planned_arguments(*gateway, *plan, "explain");
  // Whoever is refused before the words matter gets the gates' reasons, though the words have no types.
  if (!arguments && arguments.error().code == ExitCode::denied) arguments = plan->base;
  if (!arguments) return context.fail_with(arguments.error());
  auto body = gateway->post_json("/api/explain", explain_request(plan->tool, *arguments, options.as));
  if (!body) return context.fail_with(body.error());
  auto explanation = parse_explanation(*body);
  if (!explanation) return context.fail_with({ExitCode::error, explanation.error().message});
  context.output.write(context.format.json ? pretty_json(*body) : as_text(*explanation, plan->tool, context));
  return exit_code_of_verdict(explanation->verdict);
}

}  // namespace hive::cli
