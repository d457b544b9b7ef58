#pragma once

#include "gateway/surfaces/rest/services.h"

/// The handlers of the routes; each answers its request exactly once.
namespace hive::rest {

void get_health(const ContextPointer& context);
void get_readiness(const ContextPointer& context);
void get_version(const ContextPointer& context);
void get_whoami(const ContextPointer& context);
void get_status(const ContextPointer& context);
void get_fleet(const ContextPointer& context);
void get_tools(const ContextPointer& context);
void get_audit(const ContextPointer& context);
void get_openapi(const ContextPointer& context);
void post_call(const ContextPointer& context);
void post_fan_out(const ContextPointer& context);
void get_approvals(const ContextPointer& context);
void get_approval(const ContextPointer& context);
void get_approval_result(const ContextPointer& context);
void post_approval(const ContextPointer& context);
void post_explain(const ContextPointer& context);
void get_configuration(const ContextPointer& context);
void post_configuration(const ContextPointer& context);
void post_join_token(const ContextPointer& context);
void post_enrolment(const ContextPointer& context);
void post_revocation(const ContextPointer& context);
void get_upstreams(const ContextPointer& context);
void post_accepted_tool(const ContextPointer& context);
void get_keys(const ContextPointer& context);
void post_key(const ContextPointer& context);
void serve_mcp(const ContextPointer& context);
void serve_mcp_events(const ContextPointer& context);
void get_protected_resource(const ContextPointer& context);

}  // namespace hive::rest
