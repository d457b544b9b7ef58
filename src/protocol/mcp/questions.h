#pragma once

#include <string>
#include <string_view>

#include "protocol/mcp/revision.h"

/// The questions that servers put to clients: elicitation/create, sampling/createMessage, roots/list.
namespace hive::mcp {

/// What a client with these capabilities lacks to be asked this, as the object that belongs into
/// data.requiredCapabilities of error -32021; empty if it can be asked. Counts the parts of a capability as well:
/// elicitation without "form" and "url" means forms alone, sampling with tools needs sampling.tools. "{}" for a method
/// that no client answers.
std::string missing_capability(std::string_view raw_capabilities, std::string_view method, std::string_view raw_params);

/// The params of a question as a client of `revision` takes them, from those of any revision. `fresh_id` becomes the
/// elicitationId that 2025-11-25 alone asks for, where the server gave none. A progress token of the server is left
/// out: it means nothing to the client.
std::string adapt_question(std::string_view raw_params, std::string_view method, Revision revision,
                           std::string_view fresh_id);

/// Whether a raw result of a client has the shape that a question calls for.
bool is_answer_to(std::string_view method, std::string_view raw_result);

/// The name under which a question of a server of the older revisions, which gives it none, goes to a client of
/// 2026-07-28: who is asked, and for what. "user_PROPERTY" for a form of one property, "user_input" for any other form,
/// "user_visit" for a link, "model_message", "client_roots". The same question always has the same name.
std::string question_key(std::string_view method, std::string_view raw_params);

/// The capability of a client that a server of the older revisions misses, by its words: those revisions have no error
/// of its own for this, and the official SDKs say "Client does not support sampling (required for ...)". Empty if the
/// words, or more than a line of them, say something else.
std::string_view capability_missed_in(std::string_view words);

}  // namespace hive::mcp
