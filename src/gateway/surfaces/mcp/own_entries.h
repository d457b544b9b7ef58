#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gateway/surfaces/mcp/catalog.h"

namespace hive::mcp_surface {

inline constexpr std::string_view list_agents_tool = "gateway__list_agents";
inline constexpr std::string_view call_agents_tool = "gateway__call_agents";
inline constexpr std::string_view approval_result_tool = "gateway__approval_result";
inline constexpr std::string_view triage_prompt = "triage";
inline constexpr std::string_view service_test_prompt = "service_test";
inline constexpr std::string_view fleet_uri = "hive://fleet";
inline constexpr std::string_view agents_uri = "hive://agents/";
inline constexpr std::string_view audit_uri = "hive://audit/";
inline constexpr std::string_view metrics_suffix = "/metrics";

/// For what of an upstream the policy is asked where no tool is named.
inline constexpr std::string_view prompt_gate = "prompts/get";
inline constexpr std::string_view resource_gate = "resources/read";
inline constexpr std::string_view completion_gate = "completion/complete";

/// Something that the gateway itself offers, with its description.
struct OwnEntry {
  Entry entry;
  std::string raw;
};
std::vector<OwnEntry> own_tools(bool with_approvals);
std::vector<OwnEntry> own_prompts();
std::vector<OwnEntry> own_resources();
std::vector<OwnEntry> own_templates(bool with_audit);

}  // namespace hive::mcp_surface
