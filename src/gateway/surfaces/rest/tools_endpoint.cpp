#include <optional>
#include <unordered_map>

#include "base/strings.h"
#include "gateway/policy/scope.h"
#include "gateway/surfaces/rest/endpoints.h"
#include "gateway/surfaces/rest/object_writer.h"
#include "protocol/json.h"

namespace hive::rest {

namespace {

constexpr std::int64_t max_limit = 10'000;

/// A tool as its owner described it, with room for its full name, and with what is known of its tier.
struct ToolText {
  std::string before;
  std::string after;
};

/// nullopt for what is not an object with a name: no client could call it.
std::optional<ToolText> text_of(std::string_view raw, protocol::Tier tier) {
  auto members = json::parse_object(raw, {.max_bytes = raw.size()});
  auto name = members ? json::find(*members, "name") : std::nullopt;
  if (!name) return std::nullopt;
  auto name_begin = static_cast<std::size_t>(name->data() - raw.data());
  ToolText text{std::string(raw.substr(0, name_begin)), {}};
  std::string_view rest = raw.substr(name_begin + name->size());
  rest.remove_suffix(rest.size() - rest.rfind('}'));
  text.after = rest;
  if (!json::find(*members, "annotations")) {
    text.after += tier == protocol::Tier::read ? R"(,"annotations":{"readOnlyHint":true})"
                                               : R"(,"annotations":{"readOnlyHint":false,"destructiveHint":true})";
  }
  if (!json::find(*members, "_meta")) {
    text.after += R"(,"_meta":{"myrmex-hive/tier":")";
    text.after += protocol::to_string(tier);
    text.after += "\"}";
  }
  text.after += '}';
  return text;
}

class ToolsBody {
 public:
  explicit ToolsBody(const Context& context)
      : policy_(*context.settings->policy), principal_(context.principal), sees_all_(principal_.scope() == nullptr) {}

  void add(const fleet::AgentStatus& agent) {
    if (agent.tools == nullptr || !policy_.reaches(principal_, agent.id)) return;
    const std::vector<std::optional<ToolText>>& texts = texts_of(agent.tools);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const fleet::Tool& tool = (*agent.tools)[i];
      if (!texts[i] || (!sees_all_ && !policy_.reaches(principal_, agent.id, tool.name))) continue;
      begin();
      body_ += texts[i]->before;
      json::append_string(body_, agent.id + "__" + tool.name);
      body_ += texts[i]->after;
    }
  }

  void add(const upstreams::Item& tool) {
    if (!policy_.reaches(principal_, tool.upstream, tool.name)) return;
    auto text = text_of(tool.raw, policy_.tier_of_upstream(tool.name));
    if (!text) return;
    begin();
    body_ += text->before;
    json::append_string(body_, tool.public_name);
    body_ += text->after;
  }

  [[nodiscard]] std::size_t count() const { return count_; }
  std::string take(const std::optional<std::string>& next_cursor) {
    body_ += ']';
    if (next_cursor) {
      ObjectWriter object(body_);
      if (next_cursor->empty()) {
        object.raw("next_cursor", "null");
      } else {
        object.text("next_cursor", *next_cursor);
      }
    }
    return std::move(body_) + "}\n";
  }

 private:
  void begin() {
    if (count_++ > 0) body_ += ',';
  }

  /// Most agents share their list, which is taken apart once.
  const std::vector<std::optional<ToolText>>& texts_of(const std::shared_ptr<const fleet::ToolList>& tools) {
    auto [found, is_new] = texts_.try_emplace(tools.get());
    if (!is_new) return found->second;
    for (const fleet::Tool& tool : *tools)
      found->second.push_back(text_of(tool.raw, policy_.tier_of(tool.name, {})));
    return found->second;
  }

  const policy::Policy& policy_;
  const policy::Principal& principal_;
  const bool sees_all_;
  std::unordered_map<const fleet::ToolList*, std::vector<std::optional<ToolText>>> texts_;
  std::string body_ = R"({"tools":[)";
  std::size_t count_ = 0;
};

/// What GET /api/tools is asked for.
struct ToolsQuery {
  std::string owner_glob;  // of agents or upstreams; empty: any
  std::size_t limit = 0;   // 0: everything at once
  std::string after;       // the last agent of the page before

  static Result<ToolsQuery> parse(const net::http::Request& request) {
    ToolsQuery query;
    query.owner_glob = request.query_parameter("agent").value_or("");
    if (auto limit = request.query_parameter("limit")) {
      std::optional<std::int64_t> number = parse_int64(*limit);
      if (!number || *number < 1 || *number > max_limit) {
        return fail(ErrorCode::invalid_argument, "query parameter limit: not a whole number from 1 to {}", max_limit);
      }
      query.limit = static_cast<std::size_t>(*number);
    }
    if (auto cursor = request.query_parameter("cursor"); cursor && !cursor->empty()) {
      if (query.limit == 0) {
        return fail(ErrorCode::invalid_argument, "query parameter cursor: only together with limit");
      }
      if (!check_agent_id(*cursor)) {
        return fail(ErrorCode::invalid_argument, "query parameter cursor: not the next_cursor of a page");
      }
      query.after = *std::move(cursor);
    }
    return query;
  }

  [[nodiscard]] bool admits(std::string_view owner) const {
    return owner_glob.empty() || policy::glob_matches(owner_glob, owner);
  }
};

}  // namespace

void get_tools(const ContextPointer& context) {
  Result<ToolsQuery> query = ToolsQuery::parse(*context->request);
  if (!query) return context->refuse({400, "invalid_query", query.error().message});
  bool has_pages = query->limit > 0;
  ToolsBody body(*context);
  fleet::SnapshotPointer fleet = context->services->dependencies.fleet.snapshot();
  for (std::size_t i = query->after.empty() ? 0 : fleet->behind(query->after); i < fleet->agents.size(); ++i) {
    const fleet::AgentStatus& agent = *fleet->agents[i];
    if (!query->admits(agent.id)) continue;
    body.add(agent);
    // Whole agents, so that a page goes on with the next one whatever tools it has by then.
    if (has_pages && body.count() >= query->limit) return context->respond_json(body.take(agent.id));
  }
  if (const upstreams::Upstreams* servers = context->services->dependencies.upstreams; servers != nullptr) {
    std::shared_ptr<const upstreams::Listing> listing = servers->listing();
    for (const upstreams::Item& tool : listing->tools) {
      // By the name that it has here as well, which need not be the server's.
      std::string_view prefix = calls::split_tool_name(tool.public_name).agent;
      if (query->admits(tool.upstream) || query->admits(prefix)) body.add(tool);
    }
  }
  context->respond_json(body.take(has_pages ? std::optional<std::string>("") : std::nullopt));
}

}  // namespace hive::rest
