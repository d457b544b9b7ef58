#pragma once

#include <span>
#include <string>
#include <string_view>

#include "protocol/json.h"
#include "protocol/mcp/message.h"

/// Inside this room: cutting and joining raw JSON whose members are known already.
namespace hive::mcp::edit {

/// Limits for a part of a message that was accepted as a whole: its size alone bounds it.
json::Limits limits_of(std::string_view raw);

/// The members of a raw object; none for what is no object.
std::vector<json::Member> members_of(std::string_view raw);

/// with_members() for an object whose members are at hand: one copy, no second look.
std::string apply(std::string_view raw_object, std::span<const json::Member> members,
                  std::span<const MemberChange> changes);

}  // namespace hive::mcp::edit
