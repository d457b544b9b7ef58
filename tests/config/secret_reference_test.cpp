#include "config/secret_reference.h"

#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/temporary_folder.h"

namespace hive::config {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::string error_of(std::string_view reference, const SecretSources& sources = SecretSources::system()) {
  Result<std::string> secret = resolve_secret(reference, sources);
  return secret ? "" : secret.error().message;
}

TEST(SecretReference, IsToldFromALiteralByItsBeginning) {
  for (std::string_view text : {"env:A", "${A}", "file:/a", "agenix:a", "vault:a#b", "${A"}) {
    EXPECT_TRUE(is_secret_reference(text)) << text;
  }
  for (std::string_view text : {"", "A", "$A", "Bearer env:A", "environment", "ENV:A"}) {
    EXPECT_FALSE(is_secret_reference(text)) << text;
  }
}

TEST(SecretReference, ReadsTheEnvironment) {
  ::setenv("HIVE_TEST_SECRET", " s3cret \n", 1);
  EXPECT_EQ(resolve_secret("env:HIVE_TEST_SECRET", SecretSources::system()).value_or("?"), "s3cret");
  EXPECT_EQ(resolve_secret("${HIVE_TEST_SECRET}", SecretSources::system()).value_or("?"), "s3cret");
  ::unsetenv("HIVE_TEST_SECRET");
  EXPECT_THAT(error_of("env:HIVE_TEST_SECRET"), HasSubstr("the environment variable HIVE_TEST_SECRET is not set"));
}

TEST(SecretReference, ReadsAFileThatOthersCannotRead) {
  TemporaryFolder folder;
  std::string path = folder.write("secret", "s3cret\n", 0640);
  EXPECT_EQ(resolve_secret("file:" + path, SecretSources::system()).value_or("?"), "s3cret");
  folder.write("secret", "s3cret\n", 0644);
  EXPECT_THAT(error_of("file:" + path), AllOf(HasSubstr("chmod 600 " + path), Not(HasSubstr("s3cret"))));
  EXPECT_THAT(error_of("file:" + (folder / "none")), HasSubstr("No such file"));
  EXPECT_THAT(error_of("file:/dev/zero"), Not(HasSubstr("s3cret")));
  EXPECT_NE(error_of("file:/dev/zero"), "");
}

TEST(SecretReference, ReadsAgenixSecretsByName) {
  TemporaryFolder folder;
  folder.write("token", "s3cret", 0400);
  SecretSources sources = SecretSources::system();
  sources.agenix_folder = folder / "";
  EXPECT_EQ(resolve_secret("agenix:token", sources).value_or("?"), "s3cret");
  for (std::string_view reference : {"agenix:", "agenix:..", "agenix:../x", "agenix:a/b"}) {
    EXPECT_THAT(error_of(reference, sources), HasSubstr("needs a name of letters")) << reference;
  }
}

TEST(SecretReference, RefusesWhatIsIncomplete) {
  EXPECT_THAT(error_of("${A"), HasSubstr("is not complete"));
  EXPECT_THAT(error_of("env:"), HasSubstr("does not name an environment variable"));
  EXPECT_THAT(error_of("env:1A"), HasSubstr("does not name an environment variable"));
  EXPECT_THAT(error_of("file:relative"), HasSubstr("absolute path"));
  EXPECT_THAT(error_of("vault:a#b"), HasSubstr("does not read from Vault"));
}

TEST(SecretReference, RefusesASecretThatIsEmpty) {
  TemporaryFolder folder;
  EXPECT_THAT(error_of("file:" + folder.write("secret", " \n", 0600)), HasSubstr("resolves to nothing"));
}

}  // namespace
}  // namespace hive::config
