#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <gmock/gmock.h>

#include "host_tree.h"
#include "priv/conf_file.h"
#include "priv/salvage.h"

namespace hive::priv {

/// The machine id of the root that make_persistent_root() makes.
constexpr std::string_view old_id = "0123456789abcdef0123456789abcdef";

inline size_t count_of(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size()))
    ++count;
  return count;
}

/// What holds before and after a switch.
class SwitchTest : public HostTree {
 protected:
  void expect_switched(const Outcome<Done>& outcome) const {
    ASSERT_TRUE(outcome.has_value()) << outcome.error().message << " " << outcome.error().detail;
    EXPECT_THAT(outcome->result, ::testing::HasSubstr(R"("switched":true)"));
    expect_state_after_switch();
  }

  // S13 to S20, whatever way led here.
  void expect_state_after_switch() const {
    EXPECT_EQ(count_of(conf(), "--ephemeral"), 1U);
    ASSERT_EQ(salvages().size(), 1U);
    EXPECT_TRUE(is_stamped(salvages()[0], "salvaged-rootfs-")) << salvages()[0];
    EXPECT_EQ(read(salvage() / "home/iris/pre-switch.txt"), "pre-switch\n");
    EXPECT_FALSE(std::filesystem::exists(salvage() / "tmp"));
    ASSERT_EQ(old_roots().size(), 1U);
    EXPECT_EQ(read(old_roots()[0] / "home/iris/pre-switch.txt"), "pre-switch\n");
    EXPECT_FALSE(std::filesystem::exists(root("/home/iris/pre-switch.txt")));
    EXPECT_TRUE(names_in(host("/var/lib/hive-priv/switch")).empty());
    EXPECT_EQ(names_in(agent()), (std::vector<std::string>{"claude", "harness", "state", "work"}));
  }

  // Nothing moved and nothing written.
  void expect_untouched() const {
    EXPECT_THAT(conf(), ::testing::Not(::testing::HasSubstr("--ephemeral")));
    EXPECT_TRUE(salvages().empty());
    EXPECT_TRUE(old_roots().empty());
    EXPECT_EQ(read(root("/home/iris/pre-switch.txt")), "pre-switch\n");
    EXPECT_EQ(names_in(agent()), (std::vector<std::string>{"claude", "harness", "state", "work"}));
  }

  [[nodiscard]] std::optional<std::string> conf_value(std::string_view key) const {
    auto parsed = ConfFile::parse(conf());
    EXPECT_TRUE(parsed.has_value());
    auto value = parsed ? parsed->value(key) : std::nullopt;
    return value ? std::optional(std::string(*value)) : std::nullopt;
  }
};

}  // namespace hive::priv
