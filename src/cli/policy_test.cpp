#include "cli/policy_test.h"

#include <algorithm>
#include <optional>

#include "base/file.h"
#include "base/strings.h"
#include "cli/json_text.h"
#include "cli/offline_policy.h"
#include "protocol/json.h"

namespace hive::cli {

namespace {

constexpr std::size_t max_file_bytes = std::size_t{4} << 20;

/// How a case came out.
struct Verdict {
  const PolicyCase* asked;
  const PolicySubject* subject;  ///< null: whoever runs the test
  ExplanationView got;
  bool passed = false;
};

bool is_as_expected(const PolicyCase& asked, const ExplanationView& got) {
  return asked.verdict == got.verdict && (asked.reason.empty() || asked.reason == got.reason) &&
         (asked.tier.empty() || asked.tier == got.tier);
}

/// The gate that decided; null when all allow.
const GateView* deciding_gate(const ExplanationView& got) {
  auto decides = [&got](const GateView& gate) { return gate.verdict == got.verdict && gate.reason == got.reason; };
  auto found = std::ranges::find_if(got.gates, decides);
  return got.verdict == "allow" || found == got.gates.end() ? nullptr : &*found;
}

std::string as_text(const Verdict& verdict, const Context& context) {
  bool color = context.format.color;
  std::string text = fmt::format(
      "{} {}: {}\n", verdict.passed ? styled("ok  ", Style::good, color) : styled("FAIL", Style::bad, color),
      escape_for_terminal(verdict.asked->place), escape_for_terminal(verdict.asked->text));
  if (verdict.passed) return text;
  const ExplanationView& got = verdict.got;
  text +=
      fmt::format("     {}\n", verdict.subject == nullptr ? "as yourself" : escape_for_terminal(verdict.subject->text));
  text += fmt::format("     got {}{}{}\n", escape_for_terminal(got.verdict),
                      got.reason.empty() ? "" : " " + escape_for_terminal(got.reason),
                      got.tier.empty() ? "" : " tier=" + escape_for_terminal(got.tier));
  if (const GateView* gate = deciding_gate(got)) {
    text += fmt::format("     by {}: {}\n", escape_for_terminal(gate->gate),
                        escape_for_terminal(gate->rule.empty() ? gate->message : gate->rule));
  }
  if (!got.tier_rule.empty() && (!verdict.asked->tier.empty() || got.reason == "approval_required")) {
    text += fmt::format("     tier: {}\n", escape_for_terminal(got.tier_rule));
  }
  return text;
}

std::string as_json(const Verdict& verdict) {
  const PolicyCase& asked = *verdict.asked;
  const GateView* gate = deciding_gate(verdict.got);
  std::string object = "{\"place\":" + json::encode_string(asked.place);
  object += ",\"case\":" + json::encode_string(asked.text);
  object += ",\"as\":" + (verdict.subject == nullptr ? "null" : json::encode_string(verdict.subject->text));
  object += fmt::format(",\"passed\":{}", verdict.passed);
  object += ",\"verdict\":" + json::encode_string(verdict.got.verdict);
  object += ",\"reason\":" + json::encode_string(verdict.got.reason);
  object += ",\"tier\":" + json::encode_string(verdict.got.tier);
  object += ",\"rule\":" + json::encode_string(gate == nullptr ? "" : gate->rule);
  return object + "}";
}

Result<PolicyCases> read_cases(const std::string& file) {
  std::string text = TRY(read_file(file, max_file_bytes));
  PolicyCases cases = TRY(parse_policy_cases(text, file));
  // A file without cases would pass whatever the policy is.
  if (cases.cases.empty()) return fail(ErrorCode::invalid_argument, "{}: no case in it", file);
  return cases;
}

/// Where the decisions come from.
class Judge {
 public:
  static std::expected<Judge, Failure> create(Context& context, const std::string& config) {
    Judge judge;
    if (config.empty()) {
      auto gateway = context.gateway();
      if (!gateway) return std::unexpected(gateway.error());
      judge.gateway_.emplace(*std::move(gateway));
    } else {
      auto policy = OfflinePolicy::load(config, *context.clock);
      if (!policy) return std::unexpected(Failure{ExitCode::error, escape_for_terminal(policy.error().message, true)});
      judge.offline_.emplace(*std::move(policy));
    }
    return judge;
  }

  [[nodiscard]] std::expected<ExplanationView, Failure> decide(const PolicyCase& asked,
                                                               const PolicySubject* subject) const {
    auto misplaced = [&asked](std::string_view why) {
      return std::unexpected(
          Failure{ExitCode::error, fmt::format("{}: {}", escape_for_terminal(asked.place), escape_for_terminal(why))});
    };
    if (offline_) {
      if (subject == nullptr) return misplaced("no \"as\" line stands before this case, so it is nobody's call");
      auto explanation = offline_->explain(asked, *subject);
      if (!explanation) return misplaced(explanation.error().message);
      return *std::move(explanation);
    }
    if (subject != nullptr && subject->needs_configuration()) {
      return misplaced("\"as\" with token, certificate or oidc needs --config: a gateway is asked by role");
    }
    auto body = gateway_->post_json(
        "/api/explain", explain_request(asked.tool, asked.arguments, subject == nullptr ? AskedAs() : subject->as));
    if (!body) return std::unexpected(body.error());
    auto explanation = parse_explanation(*body);
    if (!explanation) return misplaced(explanation.error().message);
    return *std::move(explanation);
  }

 private:
  std::optional<GatewayClient> gateway_;
  std::optional<OfflinePolicy> offline_;
};

void report(Context& context, const std::vector<Verdict>& verdicts, bool verbose) {
  auto failed = std::ranges::count(verdicts, false, &Verdict::passed);
  if (context.format.json) {
    std::string cases;
    for (const Verdict& verdict : verdicts)
      cases += (cases.empty() ? "" : ",") + as_json(verdict);
    context.output.write(
        pretty_json(fmt::format(R"({{"cases":[{}],"total":{},"failed":{}}})", cases, verdicts.size(), failed)));
    return;
  }
  std::string text;
  for (const Verdict& verdict : verdicts) {
    if (verbose || !verdict.passed) text += as_text(verdict, context);
  }
  text += fmt::format("{} case{}, {} failed\n", verdicts.size(), verdicts.size() == 1 ? "" : "s", failed);
  context.output.write(text);
}

}  // namespace

ExitCode run_policy_test(Context& context, const PolicyTestOptions& options) {
  std::vector<PolicyCases> files;
  for (const std::string& file : options.files) {
    auto cases = read_cases(file);
    if (!cases) return context.fail_with({ExitCode::error, escape_for_terminal(cases.error().message, true)});
    files.push_back(*std::move(cases));
  }
  auto judge = Judge::create(context, options.config);
  if (!judge) return context.fail_with(judge.error());
  std::vector<Verdict> verdicts;
  for (const PolicyCases& file : files) {
    for (const PolicyCase& asked : file.cases) {
      const PolicySubject* subject = asked.subject ? &file.subjects[*asked.subject] : nullptr;
      auto got = judge->decide(asked, subject);
      if (!got) return context.fail_with(got.error());
      bool passed = is_as_expected(asked, *got);
      verdicts.push_back({&asked, subject, *std::move(got), passed});
    }
  }
  report(context, verdicts, options.verbose);
  bool all_passed = std::ranges::all_of(verdicts, &Verdict::passed);
  return all_passed ? ExitCode::success : ExitCode::error;
}

}  // namespace hive::cli
