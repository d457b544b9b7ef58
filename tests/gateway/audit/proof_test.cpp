#include "gateway/audit/proof.h"

#include <gmock/gmock.h>

#include "gateway/audit/entry.h"
#include "gateway/audit/support.h"

namespace hive::audit {
namespace {

using ::testing::HasSubstr;

class AuditProof : public LogTest {
 protected:
  void SetUp() override {
    auto log = open_good();
    ASSERT_TRUE(log);
    for (int i = 0; i < 21; ++i)
      ASSERT_TRUE(log->append(record("step", std::to_string(i))));
  }

  std::string refusal(const EntryProof& proof) {
    auto checked = check_proof(proof, "", key_.public_key());
    return checked ? "" : checked.error().message;
  }
};

TEST_F(AuditProof, EveryEntryCanBeProvedWithTheKeyAlone) {
  for (std::uint64_t seq = 0; seq < 21; ++seq) {
    auto proof = prove_entry(options_.path, seq);
    ASSERT_TRUE(proof) << proof.error().message;
    EXPECT_LE(proof->hashes.size(), 5u);
    auto again = proof_from_json(proof_to_json(*proof));
    ASSERT_TRUE(again) << again.error().message;
    auto checkpoint = check_proof(*again, test_origin, key_.public_key());
    ASSERT_TRUE(checkpoint) << checkpoint.error().message;
    EXPECT_EQ(checkpoint->size, 21u);
    EXPECT_EQ(EntryView::parse(again->entry)->text(Field::call_id), std::to_string(seq));
  }
}

TEST_F(AuditProof, AnEntryThatIsNotThereCannotBeProved) {
  auto proof = prove_entry(options_.path, 21);
  ASSERT_FALSE(proof);
  EXPECT_EQ(proof.error().code, ErrorCode::not_found);
  EXPECT_THAT(proof.error().message, HasSubstr("covers 21 entries"));
}

// Row 154.
TEST_F(AuditProof, AForgedProofIsRefused) {
  const EntryProof good = prove_entry(options_.path, 5).value();
  ASSERT_EQ(refusal(good), "");

  EntryProof forged = good;
  forged.entry.replace(forged.entry.find("ann"), 3, "bob");
  EXPECT_THAT(refusal(forged), HasSubstr("does not lead to the signed root"));

  forged = good;
  forged.seq = 6;
  EXPECT_THAT(refusal(forged), HasSubstr("the entry says it is number 5"));

  forged = good;
  forged.size = 20;
  EXPECT_THAT(refusal(forged), HasSubstr("signed checkpoint says 21"));

  forged = good;
  forged.size = 0;
  EXPECT_NE(refusal(forged), "");

  forged = good;
  forged.hashes.pop_back();
  EXPECT_THAT(refusal(forged), HasSubstr("too few"));

  forged = good;
  forged.hashes.push_back(forged.hashes[0]);
  EXPECT_THAT(refusal(forged), HasSubstr("too many"));

  forged = good;
  std::swap(forged.hashes[0], forged.hashes[1]);
  EXPECT_NE(refusal(forged), "");

  forged = good;
  forged.checkpoint.replace(forged.checkpoint.find("21"), 2, "22");
  EXPECT_NE(refusal(forged), "");
}

TEST_F(AuditProof, AProofOfAnotherKeyOrLogIsRefused) {
  EntryProof proof = prove_entry(options_.path, 5).value();
  EXPECT_FALSE(check_proof(proof, "", crypto::PrivateKey::generate("").value().public_key()));
  EXPECT_FALSE(check_proof(proof, "hive.test/other", key_.public_key()));
}

TEST_F(AuditProof, TextThatIsNoProofIsRefusedWithTheFieldNamed) {
  EXPECT_FALSE(proof_from_json(""));
  EXPECT_THAT(proof_from_json("{}").error().message, HasSubstr("format"));
  std::string good = proof_to_json(prove_entry(options_.path, 5).value());
  auto without = [&](std::string_view text, std::string_view instead) {
    std::string changed = good;
    changed.replace(changed.find(text), text.size(), instead);
    auto parsed = proof_from_json(changed);
    return parsed ? "" : parsed.error().message;
  };
  EXPECT_THAT(without("myrmex-audit-proof/1", "myrmex-audit-proof/9"), HasSubstr("unknown"));
  EXPECT_THAT(without("\"seq\":5", "\"seq\":-5"), HasSubstr("seq"));
  EXPECT_THAT(without("\"seq\":5", "\"seq\":\"5\""), HasSubstr("seq"));
  EXPECT_THAT(without("\"size\":21", "\"size\":1e2"), HasSubstr("size"));
  EXPECT_THAT(without("\"hashes\":[\"", "\"hashes\":[\"AAAA\",\""), HasSubstr("hashes"));
  EXPECT_THAT(without("\"checkpoint\":", "\"check\":"), HasSubstr("checkpoint"));
  std::string many = "[";
  for (int i = 0; i < 65; ++i)
    many += "\"47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\",";
  EXPECT_THAT(without("\"hashes\":[", "\"hashes\":" + many), HasSubstr("more than any log needs"));
}

}  // namespace
}  // namespace hive::audit
