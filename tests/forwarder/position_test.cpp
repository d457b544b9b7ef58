#include "forwarder/position.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/unique_fd.h"
#include "forwarder/forwarder.h"

namespace hive::forwarder {
namespace {

class PositionFile : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/hive-position-test.XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    folder_ = folder;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path() const { return folder_ + "/position.json"; }
  std::string folder_;
};

TEST_F(PositionFile, IsReadAsItWasWritten) {
  const Position position{.cursor = "s=1;\"i\"=2", .boot_id = "b", .monotonic_us = 7};
  ASSERT_TRUE(save_position(path(), position));
  auto read = load_position(path());
  ASSERT_TRUE(read);
  EXPECT_EQ(*read, position);
}

TEST_F(PositionFile, ThatIsNotThereMeansFromTheBeginning) {
  auto read = load_position(path());
  ASSERT_TRUE(read);
  EXPECT_FALSE(*read);
}

TEST_F(PositionFile, ThatSaysSomethingElseIsNoReasonToSendEverythingAgain) {
  for (const char* text : {"", "{", "{}", R"({"cursor":""})", R"({"cursor":"x","boot_id":"b","monotonic_us":-1})"}) {
    std::ofstream(path()) << text;
    EXPECT_FALSE(load_position(path())) << text;
  }
}

TEST_F(PositionFile, ForwardingEndsWhenItIsToldToAndNothingIsLeft) {
  UniqueFd stop(::eventfd(1, EFD_CLOEXEC));
  Options options;
  options.journal = folder_;
  options.position_path = path();
  int sent = 0;
  auto done = forward(
      options,
      [&](const std::string&) {
        ++sent;
        return Answer{.sent = Sent::accepted, .problem = {}};
      },
      stop.get());
  EXPECT_TRUE(done);
  EXPECT_EQ(sent, 0);
}

TEST_F(PositionFile, ForwardingFailsWithoutAJournal) {
  UniqueFd stop(::eventfd(1, EFD_CLOEXEC));
  Options options;
  options.journal = folder_ + "/absent";
  options.position_path = path();
  EXPECT_FALSE(forward(options, [](const std::string&) { return Answer{}; }, stop.get()));
}

}  // namespace
}  // namespace hive::forwarder
