#pragma once

#include <vector>

#include "config/gateway_keys.h"
#include "config/key_info.h"

namespace hive::config {

/// Who may call: readers of the keys that give somebody a role.
void read_auth_token(Reader& reader, const Value& value, GatewayDraft& draft);
void read_tokens(Reader& reader, const Value& value, GatewayDraft& draft);
void read_scoped_tokens(Reader& reader, const Value& value, GatewayDraft& draft);
void read_client_ca(Reader& reader, const Value& value, GatewayDraft& draft);
void read_mtls_role(Reader& reader, const Value& value, GatewayDraft& draft);
void read_stdio_role(Reader& reader, const Value& value, GatewayDraft& draft);
void read_mtls_cn_roles(Reader& reader, const Value& value, GatewayDraft& draft);
void read_proxy_identity_header(Reader& reader, const Value& value, GatewayDraft& draft);
void read_proxy_secret_header(Reader& reader, const Value& value, GatewayDraft& draft);
void read_proxy_secret(Reader& reader, const Value& value, GatewayDraft& draft);
void read_proxy_role(Reader& reader, const Value& value, GatewayDraft& draft);
void read_proxy_addresses(Reader& reader, const Value& value, GatewayDraft& draft);
void read_oidc_issuer(Reader& reader, const Value& value, GatewayDraft& draft);
void read_oidc_role_claim(Reader& reader, const Value& value, GatewayDraft& draft);
void read_oidc_role_map(Reader& reader, const Value& value, GatewayDraft& draft);

/// What must hold across these keys.
void check_access(Reader& reader, const GatewayDraft& draft);

/// Appends the rows of the tables of the objects in `tokens` and `scoped_tokens`.
void append_token_keys(std::vector<PlacedKey>& keys);

}  // namespace hive::config
