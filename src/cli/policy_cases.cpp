#include "cli/policy_cases.h"

#include <algorithm>
#include <array>

#include "base/strings.h"
#include "cli/call_arguments.h"
#include "cli/call_plan.h"
#include "gateway/policy/principal.h"
#include "protocol/tools.h"

namespace hive::cli {

namespace {

constexpr std::size_t max_problems = 50;
constexpr std::size_t max_shown_bytes = 300;
constexpr std::array<std::string_view, 4> verdicts = {"allow", "deny", "ask", "unknown"};

bool is_blank(char c) {
  return c == ' ' || c == '\t';
}

/// Takes what stands between quotes from the front of `rest`.
Result<std::string> take_quoted(std::string_view& rest) {
  char quote_mark = rest.front();
  std::string value;
  for (std::size_t k = 1; k < rest.size(); ++k) {
    char c = rest[k];
    if (c == quote_mark) {
      rest.remove_prefix(k + 1);
      if (!rest.empty() && !is_blank(rest.front())) {
        return fail(ErrorCode::invalid_argument, "a blank must follow the closing quote");
      }
      return value;
    }
    bool escapes = quote_mark == '"' && c == '\\' && k + 1 < rest.size() && (rest[k + 1] == '"' || rest[k + 1] == '\\');
    value += escapes ? rest[++k] : c;
  }
  return fail(ErrorCode::invalid_argument, "a quote is not closed");
}

/// The words of a line, without quotes and comment.
Result<std::vector<std::string>> split_words(std::string_view line) {
  std::vector<std::string> words;
  while (true) {
    while (!line.empty() && is_blank(line.front()))
      line.remove_prefix(1);
    if (line.empty() || line.front() == '#') return words;
    std::string word;
    bool may_be_quoted = true;
    while (!line.empty() && !is_blank(line.front())) {
      if (may_be_quoted && (line.front() == '"' || line.front() == '\'')) {
        word += TRY(take_quoted(line));
        break;
      }
      may_be_quoted = line.front() == '=' && word.find('=') == std::string::npos;
      word += line.front();
      line.remove_prefix(1);
    }
    words.push_back(std::move(word));
  }
}

Result<std::vector<std::string>> parse_list(std::string_view key, std::string_view value) {
  std::vector<std::string> list;
  for (std::string_view part : split(value, ',')) {
    part = trim(part);
    if (part.empty()) return fail(ErrorCode::invalid_argument, "{}: an empty name in the list", key);
    list.emplace_back(part);
  }
  return list;
}

Result<PolicySubject> parse_subject(const std::vector<std::string>& words, std::string_view text) {
  PolicySubject subject;
  subject.text = text;
  AskedAs& as = subject.as;
  const std::array<std::pair<std::string_view, std::string*>, 5> texts = {{{"role", &as.role},
                                                                           {"identity", &as.identity},
                                                                           {"token", &subject.token},
                                                                           {"certificate", &subject.certificate},
                                                                           {"oidc", &subject.oidc}}};
  const std::array<std::pair<std::string_view, std::vector<std::string>*>, 4> lists = {
      {{"groups", &as.groups}, {"agents", &as.agents}, {"tags", &as.tags}, {"tools", &as.tools}}};
  for (const std::string& word : words) {
    std::size_t equals = word.find('=');
    std::string_view key = std::string_view(word).substr(0, equals);
    std::string_view value =
        equals == std::string::npos ? std::string_view() : std::string_view(word).substr(equals + 1);
    auto is_key = [key](const auto& known) { return known.first == key; };
    auto text_key = std::ranges::find_if(texts, is_key);
    auto list_key = std::ranges::find_if(lists, is_key);
    if (text_key == texts.end() && list_key == lists.end()) {
      return fail(ErrorCode::invalid_argument,
                  "as: {} is none of role, identity, groups, agents, tags, tools, token, certificate, oidc",
                  quote_briefly(key));
    }
    bool is_repeated = text_key != texts.end() ? !text_key->second->empty() : !list_key->second->empty();
    if (is_repeated) return fail(ErrorCode::invalid_argument, "as: {} stands twice", key);
    if (value.empty()) return fail(ErrorCode::invalid_argument, "as: {} has no value", key);
    if (text_key != texts.end()) {
      *text_key->second = value;
    } else {
      *list_key->second = TRY(parse_list(key, value));
    }
  }
  bool only_groups = as.role.empty() && as.identity.empty() && !as.has_scope();
  int named = static_cast<int>(!subject.token.empty()) + static_cast<int>(!subject.certificate.empty()) +
              static_cast<int>(!subject.oidc.empty());
  if (named > 1 || (named == 1 && (!only_groups || (!as.groups.empty() && subject.oidc.empty())))) {
    return fail(ErrorCode::invalid_argument,
                "as: token, certificate and oidc stand alone (oidc with groups), because they tell the rest");
  }
  if (named == 0 && !policy::role_from_string(as.role)) {
    return fail(ErrorCode::invalid_argument, "as: {}; write role=admin, role=operator or role=read-only",
                as.role.empty() ? "no role" : quote_briefly(as.role) + " is no role");
  }
  return subject;
}

Result<void> parse_expectation(PolicyCase& parsed, std::span<const std::string> words) {
  if (words.empty()) {
    return fail(ErrorCode::invalid_argument, "nothing follows \"->\": write allow, deny, ask or unknown");
  }
  parsed.verdict = words.front();
  if (std::ranges::find(verdicts, parsed.verdict) == verdicts.end()) {
    return fail(ErrorCode::invalid_argument, "{} is not a decision: write allow, deny, ask or unknown",
                quote_briefly(parsed.verdict));
  }
  for (const std::string& word : words.subspan(1)) {
    if (word.starts_with("tier=") && parsed.tier.empty()) {
      parsed.tier = word.substr(5);
      if (!protocol::tier_from_string(parsed.tier)) {
        return fail(ErrorCode::invalid_argument, "{} is not a tier: write tier=read, tier=write or tier=admin",
                    quote_briefly(parsed.tier));
      }
    } else if (word.find('=') == std::string::npos && parsed.reason.empty() && parsed.verdict != "allow") {
      parsed.reason = word;
    } else {
      return fail(ErrorCode::invalid_argument, "{} is unexpected behind the decision", quote_briefly(word));
    }
  }
  return {};
}

Result<PolicyCase> parse_case(const std::vector<std::string>& words, std::string_view text) {
  PolicyCase parsed;
  parsed.text = text;
  auto arrow = std::ranges::find(words, "->");
  if (arrow == words.end()) {
    return fail(ErrorCode::invalid_argument, "a case is a call, \"->\" and what the gates must say: {}",
                "edge-1__get_metrics -> allow");
  }
  std::span<const std::string> call(words.begin(), arrow);
  if (call.empty() || !is_tool_name(call.front())) {
    return fail(ErrorCode::invalid_argument, "{} is not the name of a tool: write AGENT__TOOL",
                call.empty() ? "\"->\"" : quote_briefly(call.front()));
  }
  parsed.tool = call.front();
  call = call.subspan(1);
  std::string base = "{}";
  if (!call.empty() && call.front().starts_with('{')) {
    base = call.front();
    call = call.subspan(1);
  }
  const protocol::ToolDescription* tool =
      protocol::find_builtin_tool(std::string_view(parsed.tool).substr(parsed.tool.find("__") + 2));
  parsed.arguments = TRY(call_arguments(base, call, tool == nullptr ? "" : tool->input_schema));
  TRY(parse_expectation(parsed, std::span(arrow + 1, words.end())));
  return parsed;
}

}  // namespace

Result<PolicyCases> parse_policy_cases(std::string_view text, const std::string& file) {
  PolicyCases parsed;
  std::string problems;
  std::size_t problem_count = 0;
  std::size_t number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    std::string_view shown = trim(line).substr(0, max_shown_bytes);
    std::string place = fmt::format("{}:{}", file, number);
    auto problem = [&](const Error& error) {
      if (++problem_count <= max_problems) problems += fmt::format("{}: {}\n", place, error.message);
    };
    auto words = split_words(trim(line));
    if (!words) {
      problem(words.error());
    } else if (words->empty()) {
      continue;
    } else if (words->front() == "as") {
      words->erase(words->begin());
      auto subject = parse_subject(*words, shown);
      // The cases below a broken line are still read, so that their own problems are told as well.
      if (!subject) problem(subject.error());
      parsed.subjects.push_back(subject ? *std::move(subject) : PolicySubject());
    } else if (auto one = parse_case(*words, shown); !one) {
      problem(one.error());
    } else {
      one->place = std::move(place);
      if (!parsed.subjects.empty()) one->subject = parsed.subjects.size() - 1;
      parsed.cases.push_back(*std::move(one));
    }
  }
  if (problem_count > max_problems) problems += fmt::format("and {} more problems\n", problem_count - max_problems);
  if (problem_count > 0) return fail(ErrorCode::invalid_argument, "{}", trim(problems));
  return parsed;
}

}  // namespace hive::cli
