#include "gateway/policy/approval.h"

#include <array>

#include "base/strings.h"
#include "crypto/sha256.h"

namespace hive::policy {

namespace {

constexpr std::string_view domain = "myrmex-hive approval v1";

void update(crypto::Sha256& hash, std::string_view field) {
  std::array<std::uint8_t, 8> length{};
  for (std::size_t i = 0; i < length.size(); ++i)
    length[i] = static_cast<std::uint8_t>(static_cast<std::uint64_t>(field.size()) >> (8 * i));
  hash.update(length);
  hash.update(field);
}

}  // namespace

std::string digest_of(const ApprovalSubject& subject) {
  crypto::Sha256 hash;
  for (std::string_view field :
       {domain, std::string_view(subject.principal), std::string_view(subject.identity),
        std::string_view(subject.on_behalf_of), std::string_view(subject.agent), std::string_view(subject.agent_key),
        std::string_view(subject.tool), std::string_view(subject.arguments), protocol::to_string(subject.tier),
        std::string_view(subject.policy_version)})
    update(hash, field);
  return to_hex(hash.finish());
}

}  // namespace hive::policy
