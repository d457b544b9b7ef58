#include "exec/output.h"

#include <string>

#include <gmock/gmock.h>

#include "base/strings.h"
#include "base/utf8.h"

namespace hive::exec {
namespace {

CapturedOutput capture(std::string_view bytes, size_t limit, size_t piece) {
  OutputCapture capture(limit);
  for (size_t at = 0; at < bytes.size(); at += piece)
    capture.append(bytes.substr(at, piece));
  return capture.take();
}

std::string numbered(size_t bytes) {
  std::string text;
  for (int i = 0; text.size() < bytes; ++i)
    text += std::to_string(i) + "\n";
  text.resize(bytes);
  return text;
}

TEST(OutputCapture, KeepsEverythingUpToTheLimit) {
  std::string text = numbered(1000);
  for (size_t piece : {size_t{1}, size_t{7}, size_t{1000}}) {
    CapturedOutput output = capture(text, 1000, piece);
    EXPECT_EQ(output.head, text);
    EXPECT_EQ(output.tail, "");
    EXPECT_EQ(output.omitted_bytes, 0U);
  }
}

TEST(OutputCapture, KeepsTheStartAndTheEndOfMore) {
  std::string text = numbered(100'000);
  for (size_t piece : {size_t{1}, size_t{77}, size_t{249}, size_t{4096}, size_t{100'000}}) {
    CapturedOutput output = capture(text, 1000, piece);
    EXPECT_EQ(output.head, text.substr(0, 750)) << piece;
    EXPECT_EQ(output.tail, text.substr(text.size() - 250)) << piece;
    EXPECT_EQ(output.total_bytes, 100'000U);
    EXPECT_EQ(output.omitted_bytes, 99'000U);
  }
}

TEST(OutputCapture, WithoutRoomItOnlyCounts) {
  CapturedOutput output = capture("12345", 0, 2);
  EXPECT_EQ(output.head + output.tail, "");
  EXPECT_EQ(output.omitted_bytes, 5U);
}

TEST(Render, OrdinaryTextStaysAsItIs) {
  RenderedOutput rendered = render(capture("plain \xe2\x82\xac\n", 100, 1), 100);
  EXPECT_EQ(rendered.text, "plain \xe2\x82\xac\n");
  EXPECT_FALSE(rendered.is_binary);
  EXPECT_FALSE(rendered.was_replaced);
  EXPECT_EQ(rendered.omitted_bytes, 0U);
}

TEST(Render, BrokenUtf8BecomesValidTextAndIsFlagged) {
  RenderedOutput rendered = render(capture("a\xc1z \xe2\x82", 100, 1), 100);
  EXPECT_TRUE(utf8::is_valid(rendered.text));
  EXPECT_TRUE(rendered.was_replaced);
  EXPECT_FALSE(rendered.is_binary);
  EXPECT_EQ(rendered.text, "a\xef\xbf\xbdz \xef\xbf\xbd");
}

TEST(Render, ACutDoesNotBreakACodePoint) {
  std::string text;
  for (int i = 0; i < 1000; ++i)
    text += "\xe2\x82\xac";
  for (size_t limit = 100; limit < 108; ++limit) {
    RenderedOutput rendered = render(capture(text, limit, 10), 1000);
    EXPECT_FALSE(rendered.was_replaced) << limit;
    EXPECT_THAT(rendered.text, testing::HasSubstr("bytes omitted]"));
    EXPECT_THAT(rendered.text, testing::Not(testing::HasSubstr("\xef\xbf\xbd")));
    EXPECT_EQ(rendered.total_bytes, 3000U);
  }
}

TEST(Render, NulBytesMakeItBinaryWithTheExactBytes) {
  std::string bytes("a\0b", 3);
  RenderedOutput rendered = render(capture(bytes, 100, 1), 100);
  EXPECT_TRUE(rendered.is_binary);
  EXPECT_EQ(rendered.text, "[binary output, 3 bytes]");
  EXPECT_EQ(rendered.base64, "YQBi");
  EXPECT_EQ(rendered.total_bytes, 3U);
}

TEST(Render, MostlyInvalidBytesAreBinary) {
  std::string bytes;
  for (int i = 0; i < 100; ++i)
    bytes += static_cast<char>(0x80 + i);
  EXPECT_TRUE(render(capture(bytes, 1000, 3), 1000).is_binary);
  EXPECT_FALSE(render(capture("caf\xe9 cr\xe8me", 1000, 3), 1000).is_binary);
}

TEST(Render, CanKeepLessThanWasCaptured) {
  std::string text = numbered(1000);
  RenderedOutput rendered = render(capture(text, 1000, 10), 100);
  EXPECT_EQ(rendered.omitted_bytes, 900U);
  EXPECT_TRUE(rendered.text.starts_with(text.substr(0, 75)));
  EXPECT_TRUE(rendered.text.ends_with(text.substr(975)));
}

TEST(OutputStream, JoinsACodePointThatWasCutByARead) {
  OutputStream stream;
  stream.append("price 5 \xe2\x82");
  EXPECT_EQ(stream.take(), "price 5 ");
  EXPECT_FALSE(stream.has_text());
  stream.append("\xac!");
  EXPECT_EQ(stream.take(), "\xe2\x82\xac!");
}

TEST(OutputStream, SaysHowMuchDidNotFit) {
  OutputStream stream(10);
  stream.append("0123456789abcdef");
  stream.append("x");
  EXPECT_EQ(stream.take(), "0123456789\n[7 bytes skipped]\n");
  stream.append("next");
  EXPECT_EQ(stream.take(), "next");
}

}  // namespace
}  // namespace hive::exec
