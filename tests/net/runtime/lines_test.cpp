#include "net/runtime/lines.h"

#include <csignal>
#include <future>
#include <vector>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

namespace hive::net {
namespace {

using testing::ElementsAre;

class LineSplitterTest : public testing::Test {
 protected:
  std::vector<std::string> lines_;
  LineSplitter splitter_{5, [this](std::string_view line) { lines_.emplace_back(line); },
                         [this] { lines_.emplace_back("<too long>"); }};
};

TEST_F(LineSplitterTest, PiecesOfAnySizeBecomeLines) {
  for (std::string_view piece : {"a", "b\nc", "\r", "\n\n", "de"})
    splitter_.feed(piece);
  EXPECT_THAT(lines_, ElementsAre("ab", "c", ""));
  splitter_.finish();
  EXPECT_THAT(lines_, ElementsAre("ab", "c", "", "de"));
}

TEST_F(LineSplitterTest, ALongLineIsSaidOnceAndTheNextOneServed) {
  splitter_.feed("12345\r\n");
  splitter_.feed("123456\n123456789");
  splitter_.feed("123456789");
  splitter_.feed("123456789\nok\n");
  EXPECT_THAT(lines_, ElementsAre("12345", "<too long>", "<too long>", "ok"));
}

TEST_F(LineSplitterTest, NothingAtTheEndIsNoLine) {
  splitter_.finish();
  splitter_.feed("a\n");
  splitter_.finish();
  EXPECT_THAT(lines_, ElementsAre("a"));
}

struct Pipe {
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) std::abort();
    out.reset(ends[0]);
    in.reset(ends[1]);
  }
  UniqueFd out;
  UniqueFd in;
};

TEST(LineReaderTest, HandsLinesToTheWorkerInOrderAndThenTheEnd) {
  Pipe pipe;
  Worker worker;
  std::vector<std::string> seen;
  LineReader reader(worker, pipe.out.get(), -1, 100,
                    {.line = [&](std::string line) { seen.push_back(std::move(line)); },
                     .too_long = [&] { seen.emplace_back("<too long>"); },
                     .end =
                         [&](LineReader::End end) {
                           EXPECT_EQ(end, LineReader::End::input);
                           worker.stop();
                         }});
  std::string text = "one\n" + std::string(200, 'x') + "\ntwo\r\nthree";
  ASSERT_EQ(::write(pipe.in.get(), text.data(), text.size()), static_cast<ssize_t>(text.size()));
  pipe.in.reset();
  worker.run();
  EXPECT_THAT(seen, ElementsAre("one", "<too long>", "two", "three"));
}

TEST(LineReaderTest, AnotherDescriptorStopsIt) {
  Pipe pipe;
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC));
  Worker worker;
  LineReader::End seen = LineReader::End::input;
  LineReader reader(worker, pipe.out.get(), stop.get(), 100,
                    {.line = [](const std::string&) {},
                     .too_long = [] {},
                     .end =
                         [&](LineReader::End end) {
                           seen = end;
                           worker.stop();
                         }});
  ::eventfd_write(stop.get(), 1);
  worker.run();
  EXPECT_EQ(seen, LineReader::End::stopped);
}

TEST(LineReaderTest, CanGoWhileTheOtherSideIsSilent) {
  Pipe pipe;
  Worker worker;
  LineReader reader(worker, pipe.out.get(), -1, 100,
                    {.line = [](const std::string&) {}, .too_long = [] {}, .end = [](LineReader::End) { FAIL(); }});
}

TEST(LineWriterTest, WritesWholeLinesWithoutNewlinesInside) {
  Pipe pipe;
  LineWriter writer(pipe.in.get());
  ASSERT_TRUE(writer.write("{\"a\":\r\n1}"));
  ASSERT_TRUE(writer.write("b"));
  char buffer[64];
  ssize_t count = ::read(pipe.out.get(), buffer, sizeof buffer);
  EXPECT_EQ(std::string(buffer, static_cast<std::size_t>(count)), "{\"a\":  1}\nb\n");
}

TEST(LineWriterTest, AClosedReaderIsAnErrorAndNothingMoreIsWritten) {
  std::signal(SIGPIPE, SIG_IGN);
  Pipe pipe;
  LineWriter writer(pipe.in.get());
  pipe.out.reset();
  EXPECT_FALSE(writer.write("a"));
  EXPECT_FALSE(writer.write("b"));
}

TEST(LineWriterTest, WaitingForASlowReaderCanBeLimitedMeanwhile) {
  Pipe pipe;
  LineWriter writer(pipe.in.get());
  auto written = std::async(std::launch::async, [&] { return writer.write(std::string(std::size_t{1} << 20, 'x')); });
  writer.limit_waiting(std::chrono::milliseconds(20));
  auto result = written.get();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::timed_out);
  EXPECT_FALSE(writer.write("half a line would be in front of this"));
}

}  // namespace
}  // namespace hive::net
