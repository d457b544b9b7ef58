#include "gateway/surfaces/rest/explain_request.h"

#include <array>

#include "gateway/surfaces/rest/members.h"

namespace hive::rest {

namespace {

constexpr std::array<std::string_view, 3> known_members = {"name", "arguments", "as"};
constexpr std::array<std::string_view, 6> known_subject_members = {"role",   "identity", "groups",
                                                                   "agents", "tags",     "tools"};

Result<ExplainRequest::Subject> parse_subject(std::string_view raw) {
  std::vector<json::Member> members = TRY(parse_members(raw, known_subject_members));
  ExplainRequest::Subject subject;
  std::string role_name = TRY(required_text(members, "role"));
  std::optional<policy::Role> role = policy::role_from_string(role_name);
  if (!role) return fail(ErrorCode::invalid_argument, "role: must be admin, operator or read-only");
  subject.role = *role;
  policy::Grant grant;
  grant.rule = "the question's own member \"as\"";
  grant.identity = TRY(optional_text(members, "identity")).value_or("");
  grant.groups = TRY(optional_texts(members, "groups")).value_or(std::vector<std::string>());
  auto agents = TRY(optional_texts(members, "agents"));
  auto tags = TRY(optional_texts(members, "tags"));
  auto tools = TRY(optional_texts(members, "tools"));
  if (agents || tags || tools) {
    policy::Scope scope;
    scope.field = "as";
    scope.tools = tools ? *std::move(tools) : std::vector<std::string>{"*"};
    if (!agents && !tags) scope.agents = {"*"};
    if (agents) scope.agents = *std::move(agents);
    if (tags) scope.tags = *std::move(tags);
    grant.scope = std::move(scope);
  }
  subject.grant = std::make_shared<const policy::Grant>(std::move(grant));
  return subject;
}

}  // namespace

Result<ExplainRequest> parse_explain_request(std::string_view body) {
  std::vector<json::Member> members =
      TRY_CONTEXT("the body is not a JSON object of a call", parse_members(body, known_members));
  ExplainRequest request;
  request.name = TRY(required_text(members, "name"));
  if (auto arguments = json::find(members, "arguments"); arguments && !json::is_null(*arguments)) {
    if (!json::is_object(*arguments)) return fail(ErrorCode::invalid_argument, "arguments: must be an object");
    request.arguments = *arguments;
  }
  if (auto subject = json::find(members, "as"); subject && !json::is_null(*subject)) {
    if (!json::is_object(*subject)) return fail(ErrorCode::invalid_argument, "as: must be an object");
    request.subject = TRY_CONTEXT("as", parse_subject(*subject));
  }
  return request;
}

}  // namespace hive::rest
