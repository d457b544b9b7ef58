#include "container/nspawn_arguments.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <unistd.h>

namespace hive::container {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;
using ::testing::StartsWith;

// A prefix under which nothing is, so that what the tests see does not depend on this machine.
const Layout nowhere{.prefix = "/nonexistent-prefix"};

Result<std::vector<std::string>> arguments(std::string_view text, std::string_view name = "h-iris") {
  const Conf conf = TRY(Conf::parse(text, "h-iris.conf"));
  return nspawn_arguments(conf, name, TRY(guest_network(conf)), nowhere);
}

std::string problem(std::string_view text, std::string_view name = "h-iris") {
  auto made = arguments(text, name);
  return made ? "no problem" : made.error().message;
}

constexpr std::string_view bridged =
    "PRIVATE_NETWORK=1\nHOST_BRIDGE=hive0\nHOST_ADDRESS=10.42.0.1\nLOCAL_ADDRESS=10.42.0.7/24\n";

TEST(NspawnArguments, BootTheNamedRootAndNothingElse) {
  auto made = arguments("PRIVATE_NETWORK=1\n");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->front(), "/usr/bin/systemd-nspawn");
  for (const char* word : {"--boot", "--keep-unit", "--notify-ready=yes", "--settings=no", "--machine=h-iris",
                           "--private-network", "--directory=/nonexistent-prefix/var/lib/nixos-containers/h-iris"}) {
    EXPECT_THAT(*made, Contains(word));
  }
  EXPECT_THAT(*made, Not(Contains("--ephemeral")));
}

TEST(NspawnArguments, PutAContainerOnItsBridgeWithFilesForItsNetwork) {
  auto made = arguments(bridged);
  ASSERT_TRUE(made);
  EXPECT_THAT(*made, Contains("--network-bridge=hive0"));
  EXPECT_THAT(*made, Contains("--resolv-conf=off"));
  EXPECT_THAT(*made, Contains("--bind-ro=/nonexistent-prefix/run/hive-container/h-iris/host0.network:"
                              "/etc/systemd/network/10-host0.network"));
}

TEST(NspawnArguments, CutTheExtraFlagsAtWhiteSpaceAndExpandNothing) {
  auto made = arguments(std::string(bridged) +
                        "EXTRA_NSPAWN_FLAGS=\"--ephemeral  --bind=/a/*:/b\t--setenv=X=$HOME\n--bind-ro=/c\"\n");
  ASSERT_TRUE(made) << made.error().message;
  for (const char* word : {"--ephemeral", "--bind=/a/*:/b", "--setenv=X=$HOME", "--bind-ro=/c"})
    EXPECT_THAT(*made, Contains(word));
}

TEST(NspawnArguments, KeepTheOwnersOfFoldersWhereAGuestHasUsersOfItsOwn) {
  const std::string binds =
      std::string(bridged) + "EXTRA_NSPAWN_FLAGS=\"--bind=/a:/b --bind=/c:/d:norbind --bind-ro=/e:/f\"\n";
  for (const char* users : {"pick", "yes", "1048576"}) {
    auto made = arguments(binds + "PRIVATE_USERS=" + users + "\n");
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_THAT(*made, IsSupersetOf({std::string("--private-users=") + users, std::string("--bind=/a:/b:idmap"),
                                     std::string("--bind=/c:/d:norbind"), std::string("--bind-ro=/e:/f")}));
  }
  for (const char* users : {"no", "identity"}) {
    auto made = arguments(binds + "PRIVATE_USERS=" + users + "\n");
    ASSERT_TRUE(made) << made.error().message;
    EXPECT_THAT(*made, Contains("--bind=/a:/b"));
  }
}

TEST(NspawnArguments, PutTheExtraFlagsLastSoThatTheyWin) {
  auto made = arguments(std::string(bridged) + "EXTRA_NSPAWN_FLAGS=--link-journal=no\n");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->back(), "--link-journal=no");
}

TEST(NspawnArguments, RefuseExtraFlagsThatChooseWhatRunsOrGiveTheHostAway) {
  for (const char* flag : {"--directory=/", "-D/", "--image=/x", "--machine=h-other", "--boot=no", "--template=/",
                           "--settings=override", "--network-interface=eth0", "--keep-unit", "--as-pid2", "/bin/sh",
                           "--", "-x", "--capabilities=all", "--bind", "--ephemeral=no", "--user=1"}) {
    EXPECT_THAT(problem(std::string(bridged) + "EXTRA_NSPAWN_FLAGS=\"--ephemeral " + flag + "\"\n"),
                AllOf(StartsWith("h-iris.conf: EXTRA_NSPAWN_FLAGS: "), HasSubstr(flag)))
        << flag;
  }
}

TEST(NspawnArguments, RefuseBytesInExtraFlagsThatAreNotPrintable) {
  EXPECT_THAT(problem(std::string(bridged) + "EXTRA_NSPAWN_FLAGS=\"--bind=/a\x01\"\n"), HasSubstr("may stand there"));
  EXPECT_THAT(problem(std::string(bridged) + "EXTRA_NSPAWN_FLAGS=\"--bind=/\xc3\xa4\"\n"),
              HasSubstr("may stand there"));
}

TEST(NspawnArguments, NeverPutAnAgentOnTheHostsNetwork) {
  EXPECT_THAT(problem(""), HasSubstr("never shares the host's network"));
  EXPECT_THAT(problem("PRIVATE_NETWORK=0\n"), HasSubstr("never shares the host's network"));
  EXPECT_EQ(problem("PRIVATE_NETWORK=0\n", "forge"), "no problem");
}

TEST(NspawnArguments, RefuseValuesThatAreNoInterfacePortOrUser) {
  for (const char* line :
       {"HOST_BRIDGE=../x", "HOST_BRIDGE=a-name-that-is-too-long", "HOST_BRIDGE=\"a b\"", "INTERFACES=\"eth0 ../x\"",
        "MACVLANS=\"/\"", "HOST_PORT=\"80;rm\"", "HOST_PORT=\"80,,81\"", "PRIVATE_USERS=\"pick --bind=/\"",
        "NETWORK_NAMESPACE_PATH=relative", "PRIVATE_NETWORK=yes", "SYSTEM_PATH=/nix/store/x"}) {
    EXPECT_THAT(problem(std::string("PRIVATE_NETWORK=1\n") + line + "\n"), StartsWith("h-iris.conf: ")) << line;
  }
}

TEST(NspawnArguments, RefuseAContainerWhosePortHasNoRoomForItsName) {
  EXPECT_THAT(problem("HOST_BRIDGE=hive0\n", "a-name-of-13-"), HasSubstr("too long"));
}

TEST(NspawnArguments, ShareTheNixStoreWhereTheHostKeepsProfilesForContainers) {
  char folder[] = "/tmp/hive-nspawn-test.XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const Layout layout{.prefix = folder};
  std::filesystem::create_directories(std::string(folder) + "/nix/var/nix/profiles/per-container");
  auto conf = Conf::parse("PRIVATE_NETWORK=1\n", "x.conf");
  ASSERT_TRUE(conf);
  auto made = nspawn_arguments(*conf, "h-iris", std::nullopt, layout);
  ASSERT_TRUE(made);
  EXPECT_THAT(*made, Contains("--bind-ro=" + layout.prefix + "/nix/store:/nix/store"));
  EXPECT_THAT(*made,
              Contains("--bind=" + layout.prefix + "/nix/var/nix/profiles/per-container/h-iris:/nix/var/nix/profiles"));
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace hive::container
