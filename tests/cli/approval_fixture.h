#pragma once

#include <string>
#include <string_view>

namespace hive::cli::test {

inline constexpr const char* first_id = "3f2a9c1d00112233445566778899aabb";
inline constexpr const char* second_id = "3f2b000000112233445566778899aabb";

/// A request as GET /api/approvals shows it; `more` are further members, each with a comma in front, which may repeat
/// none.
inline std::string approval_json(
    std::string_view id, std::string_view status = "pending", std::string_view more = "",
    std::string_view escaped_arguments = R"({\"name\":\"systemctl\",\"args\":[\"restart\"]})") {
  std::string text = "{\"id\":\"" + std::string(id) + "\",\"status\":\"" + std::string(status) + "\",\"args\":\"" +
                     std::string(escaped_arguments) + "\"";
  text +=
      R"(,"token_id":"token:1234567890ab","identity":"alice","role":"operator","agent_id":"edge-1","tool":"run_command",)"
      R"("tier":"admin","created_at":"2026-11-30T12:00:00.000Z","expires_at":"2036-11-30T12:15:00.000Z",)"
      R"("digest":"d1d1d1","required":1,"surface":"rest","request_id":"req-1","agent_key":"SHA256:abc")";
  text += more;
  return text + "}";
}

}  // namespace hive::cli::test
