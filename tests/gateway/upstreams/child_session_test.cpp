#include <filesystem>
#include <fstream>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "gateway/upstreams/session_fixture.h"

/// Servers that run as our children, mostly bad ones. They are shell scripts, so that every byte is theirs.
namespace hive::upstreams {
namespace {

using test::FakeCaller;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

/// Reads requests and answers the legacy handshake; `rest` is what comes then. Functions: reply RESULT answers the last
/// request read, next reads one into $line and its id into $id.
std::string legacy_server(const std::string& rest) {
  return R"sh(
next() { IFS= read -r line || exit 0; id=$(printf '%s' "$line" | sed 's/.*"id":"\(h-[0-9]*\)".*/\1/'); }
reply() { printf '{"jsonrpc":"2.0","id":"%s","result":%s}\n' "$id" "$1"; }
refuse() { printf '{"jsonrpc":"2.0","id":"%s","error":{"code":-32601,"message":"unknown"}}\n' "$id"; }
next; case $line in *server/discover*) refuse; next;; esac
reply '{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"sh","version":"0"}}'
next
)sh" + rest;
}

/// Whether a process exists and is no zombie.
bool is_running(int pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  if (!std::getline(status, text)) return false;
  return text.substr(text.rfind(')') + 2, 1) != "Z";
}
bool exists(int pid) {
  return std::ifstream("/proc/" + std::to_string(pid) + "/stat").good();
}

class ChildSessionTest : public test::SessionTest {
 protected:
  [[nodiscard]] static bool wait_until(const std::function<bool()>& condition) {
    std::mutex mutex;
    std::condition_variable never;
    std::unique_lock lock(mutex);
    for (int tries = 0; tries < 2000; ++tries) {
      if (condition()) return true;
      never.wait_for(lock, std::chrono::milliseconds(10));
    }
    return false;
  }
};

TEST_F(ChildSessionTest, GivesTheChildNothingButAFixedEnvironmentAndWhatIsConfigured) {
  ::setenv("HIVE_TEST_SECRET", "do-not-leak", 1);
  ConnectionOptions options = shell(legacy_server(
      R"sh(next; printf '{"jsonrpc":"2.0","id":"%s","result":{"fds":"' "$id"
for n in 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do [ -e /proc/$$/fd/$n ] && printf '%s ' $n; done
printf '","cwd":"%s","env":"' "$(pwd)"; env | sort | tr '\n' ' '; printf '"}}\n'; cat >/dev/null)sh"));
  options.environment = {{"COLOUR", "green"}};
  open_ready(std::move(options));
  Reply reply = call("tools/list", "{}");
  ::unsetenv("HIVE_TEST_SECRET");
  EXPECT_THAT(reply.body, AllOf(HasSubstr("PATH=/usr/local/sbin"), HasSubstr("HOME="), HasSubstr("LANG=C.UTF-8"),
                                HasSubstr("COLOUR=green"), Not(HasSubstr("do-not-leak"))));
  EXPECT_THAT(reply.body, AllOf(HasSubstr(R"("cwd":"/")"), HasSubstr(R"("fds":"0 1 2 ")")));
}

TEST_F(ChildSessionTest, StartsAnOlderServerAgainThatDiesOfTheProbe) {
  ServerInfo info = open_ready(shell(
      R"sh(IFS= read -r line; case $line in *server/discover*) exit 1;; esac
id=$(printf '%s' "$line" | sed 's/.*"id":"\(h-[0-9]*\)".*/\1/')
printf '{"jsonrpc":"2.0","id":"%s","result":{"protocolVersion":"2024-11-05","capabilities":{}}}\n' "$id"
cat >/dev/null)sh"));
  EXPECT_EQ(info.revision, mcp::Revision::v2024_11_05);
}

TEST_F(ChildSessionTest, StartsABridgeAgainThatTakesTheProbeForTheBeginningOfASession) {
  ServerInfo info = open_ready(shell(
      R"sh(was_probed=no
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":"\(h-[0-9]*\)".*/\1/')
  case $line in
    *server/discover*) was_probed=yes; printf '{"jsonrpc":"2.0","id":"%s","error":{"code":-32000,"message":"what?"}}\n' "$id";;
    *'"initialize"'*)
      if [ $was_probed = yes ]; then
        printf '{"jsonrpc":"2.0","id":"%s","error":{"code":-32600,"message":"initialized already"}}\n' "$id"
      else
        printf '{"jsonrpc":"2.0","id":"%s","result":{"protocolVersion":"2025-11-25","capabilities":{}}}\n' "$id"
      fi;;
  esac
done)sh"));
  EXPECT_EQ(info.revision, mcp::Revision::v2025_11_25);
}

TEST_F(ChildSessionTest, SaysWhyAServerRefusesAlsoWhenItIsAskedNothingBefore) {
  open(shell(
      R"sh(while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":"\(h-[0-9]*\)".*/\1/')
  printf '{"jsonrpc":"2.0","id":"%s","error":{"code":-32000,"message":"closed on Sundays"}}\n' "$id"
done)sh"));
  EXPECT_THAT(wait_closed().message, HasSubstr("closed on Sundays"));
}

TEST_F(ChildSessionTest, InitializesAServerThatKeepsSilentWhenProbed) {
  ConnectionOptions options = shell(
      R"sh(IFS= read -r line; IFS= read -r line
id=$(printf '%s' "$line" | sed 's/.*"id":"\(h-[0-9]*\)".*/\1/')
printf '{"jsonrpc":"2.0","id":"%s","result":{"protocolVersion":"2025-03-26","capabilities":{}}}\n' "$id"
cat >/dev/null)sh");
  options.start_timeout = std::chrono::seconds(9);  // of which the probe gets a third
  EXPECT_EQ(open_ready(std::move(options)).revision, mcp::Revision::v2025_03_26);
}

TEST_F(ChildSessionTest, SaysWhyAProgramCannotBeStarted) {
  ConnectionOptions options = options_for(TransportKind::stdio);
  options.command = "no-such-program-here";
  open(std::move(options));
  Error error = wait_closed();
  EXPECT_THAT(error.message, HasSubstr("no-such-program-here"));
}

TEST_F(ChildSessionTest, SaysHowAServerEndedThatDoesNotSpeak) {
  open(shell("exit 3"));
  EXPECT_THAT(wait_closed().message, HasSubstr("ended with status 3"));
}

TEST_F(ChildSessionTest, GivesUpAServerThatNeverAnswers) {
  ConnectionOptions options = shell("cat >/dev/null");
  options.start_timeout = std::chrono::seconds(3);
  open(std::move(options));
  Error error = wait_closed();
  EXPECT_EQ(error.code, ErrorCode::timed_out);
  EXPECT_THAT(error.message, HasSubstr("did not answer initialize"));
}

TEST_F(ChildSessionTest, RefusesARevisionThatNobodyKnows) {
  open(shell(R"sh(while IFS= read -r line; do
id=$(printf '%s' "$line" | sed 's/.*"id":"\(h-[0-9]*\)".*/\1/')
printf '{"jsonrpc":"2.0","id":"%s","result":{"protocolVersion":"1999-01-01","capabilities":{}}}\n' "$id"; done)sh"));
  Error error = wait_closed();
  EXPECT_EQ(error.code, ErrorCode::invalid_argument);
  EXPECT_THAT(error.message, HasSubstr("1999-01-01"));
}

TEST_F(ChildSessionTest, SurvivesLinesThatAreNoMessages) {
  open_ready(shell(legacy_server(
      "next; echo 'Server started!'; echo '{\"jsonrpc\":\"1.0\"}'; echo '[]'; printf '\\n\\r\\n'; printf "
      "'\\377\\376\\n'\n"
      "echo '{\"jsonrpc\":\"2.0\",\"id\":\"h-999\",\"result\":{}}'; echo "
      "'{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}'\n"
      "echo '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":{\"progressToken\":[1]}}'\n"
      "echo '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{}}'\n"
      "printf '{\"jsonrpc\":\"2.0\",\"id\":\"%s\",\"result\":{\"good\":1}}\\r\\n' \"$id\"; cat >/dev/null")));
  EXPECT_THAT(call("tools/list", "{}").body, HasSubstr("\"good\":1"));
}

TEST_F(ChildSessionTest, TakesNoResultThatIsNoObject) {
  open_ready(shell(legacy_server("next; reply 7; cat >/dev/null")));
  Reply reply = call("tools/list", "{}");
  EXPECT_EQ(reply.kind, ReplyKind::lost);
  EXPECT_EQ(reply.reason, "upstream_answer_invalid");
}

TEST_F(ChildSessionTest, EndsAServerThatSendsALineWithoutEnd) {
  open_ready(shell(legacy_server("next; head -c 5000000 /dev/zero | tr '\\0' x; cat >/dev/null")));
  auto pending = send("tools/list", "{}");
  EXPECT_EQ(pending->wait().kind, ReplyKind::lost);
  Error error = wait_closed();
  EXPECT_EQ(error.code, ErrorCode::corrupt);
  EXPECT_THAT(error.message, HasSubstr("4194304"));
}

TEST_F(ChildSessionTest, StaysUsableUnderAFloodOfNotifications) {
  open_ready(
      shell(legacy_server("next; yes '{\"jsonrpc\":\"2.0\",\"method\":\"notifications/tools/list_changed\"}' | head -n "
                          "200000; reply '{}'; cat >/dev/null")));
  EXPECT_EQ(call("tools/list", "{}").kind, ReplyKind::result);
  std::lock_guard lock(mutex_);
  EXPECT_LT(notifications_.size(), 100'000U) << "beyond a rate that nobody needs they are dropped";
  EXPECT_GT(notifications_.size(), 1000U);
}

TEST_F(ChildSessionTest, KeepsEachRequestOnOneLineWhateverItsSpaces) {
  open_ready(shell(legacy_server(R"sh(next; reply '{"first":1}'; next; reply '{"second":2}'; cat >/dev/null)sh")));
  EXPECT_THAT(call("tools/call", "{\n  \"name\":\r\n \"x\"\n}").body, HasSubstr("first"));
  EXPECT_THAT(call("tools/list", "{}").body, HasSubstr("second"));
}

TEST_F(ChildSessionTest, RefusesWhatAServerDoesNotReadInsteadOfHoardingIt) {
  open_ready(shell(legacy_server("sleep 1000")));
  std::string large = R"({"text":")" + std::string(1 << 20, 'x') + R"("})";
  std::vector<std::shared_ptr<test::Pending>> all;
  for (int i = 0; i < 40; ++i)
    all.push_back(send("tools/call", large, nullptr, std::chrono::milliseconds(500)));
  int refused = 0;
  for (auto& pending : all)
    refused += pending->wait().reason == "upstream_busy" ? 1 : 0;
  EXPECT_GT(refused, 15);
  EXPECT_LT(refused, 40);
}

TEST_F(ChildSessionTest, RefusesQuestionsWhenItIsNotClearWhomTheyAreFor) {
  std::string server = legacy_server(
      "next; first=$id; next; echo '{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"elicitation/create\",\"params\":{}}'\n"
      "IFS= read -r answer; case $answer in *-32601*) kind=refused;; *) kind=asked;; esac\n"
      "reply \"{\\\"kind\\\":\\\"$kind\\\"}\"; id=$first; reply '{}'; cat >/dev/null");
  open_ready(shell(server));
  auto alice = std::make_shared<FakeCaller>(R"({"elicitation":{}})", "alice");
  auto bob = std::make_shared<FakeCaller>(R"({"elicitation":{}})", "bob");
  alice->answer = bob->answer = "{}";
  auto first = send("tools/call", "{}", alice);
  auto second = send("tools/call", "{}", bob);
  EXPECT_THAT(second->wait().body, HasSubstr("refused"));
  EXPECT_EQ(first->wait().kind, ReplyKind::result);
  EXPECT_TRUE(alice->asked().empty());
  EXPECT_TRUE(bob->asked().empty());
}

TEST_F(ChildSessionTest, AsksTheOneWhoCanBeAsked) {
  std::string server = legacy_server(
      "next; first=$id; next; echo "
      "'{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"method\":\"sampling/createMessage\",\"params\":{\"a\":1}}'\n"
      "IFS= read -r answer; case $answer in *'\"id\":\"q\"'*'\"model\"'*) kind=answered;; *) kind=refused;; esac\n"
      "reply \"{\\\"kind\\\":\\\"$kind\\\"}\"; id=$first; reply '{}'; cat >/dev/null");
  open_ready(shell(server));
  auto alice = std::make_shared<FakeCaller>(R"({"sampling":{}})", "alice");
  auto bob = std::make_shared<FakeCaller>("{}", "bob");
  alice->answer = R"({"model":"m"})";
  auto first = send("tools/call", "{}", alice);
  EXPECT_THAT(call("tools/call", "{}", bob).body, HasSubstr("answered"));
  EXPECT_EQ(first->wait().kind, ReplyKind::result);
  ASSERT_EQ(alice->asked().size(), 1U);
  EXPECT_EQ(alice->asked()[0].second, R"({"a":1})");
}

TEST_F(ChildSessionTest, TellsTheServerWhenTheRequestOfAQuestionHasEnded) {
  std::string server = legacy_server(
      "next; echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"elicitation/create\",\"params\":{}}'\n"
      "IFS= read -r a; IFS= read -r b; next\n"
      "case \"$a$b\" in *'\"id\":1'*error*) reply '{\"told\":true}';; *) reply '{\"told\":false}';; esac; cat "
      ">/dev/null");
  open_ready(shell(server));
  auto alice = std::make_shared<FakeCaller>(R"({"elicitation":{}})");
  auto slow = send("tools/call", "{}", alice);
  ASSERT_TRUE(alice->wait_asked(1));
  connection_->cancel(slow->ticket, "");
  EXPECT_EQ(slow->wait().kind, ReplyKind::unconfirmed);
  EXPECT_THAT(call("tools/list", "{}").body, HasSubstr("true"));
}

TEST_F(ChildSessionTest, AnswersAPingAndRefusesMethodsThatClientsDoNotHave) {
  std::string server = legacy_server(
      "next; echo '{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"ping\"}'; IFS= read -r a\n"
      "echo '{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"shell/run\"}'; IFS= read -r b\n"
      "case \"$a|$b\" in *'\"id\":0,\"result\":{}'*'|'*-32601*) reply '{\"ok\":1}';; *) reply '{}';; esac; cat "
      ">/dev/null");
  open_ready(shell(server));
  EXPECT_THAT(call("tools/list", "{}").body, HasSubstr("ok"));
}

TEST_F(ChildSessionTest, NoticesAServerThatHangs) {
  ConnectionOptions options = shell(legacy_server("exec sleep 1000"));
  options.ping_interval = std::chrono::milliseconds(100);
  options.ping_timeout = std::chrono::milliseconds(200);
  open_ready(std::move(options));
  auto pending = send("tools/list", "{}");
  Error error = wait_closed();
  EXPECT_EQ(error.code, ErrorCode::timed_out);
  EXPECT_THAT(error.message, HasSubstr("ping"));
  EXPECT_EQ(pending->wait().kind, ReplyKind::lost);
}

TEST_F(ChildSessionTest, LeavesAServerAloneThatAnswersPings) {
  ConnectionOptions options =
      shell(legacy_server("for i in 1 2 3 4 5; do next; refuse; done; echo "
                          "'{\"jsonrpc\":\"2.0\",\"method\":\"notifications/five\"}'; cat >/dev/null"));
  options.ping_interval = std::chrono::milliseconds(40);
  open_ready(std::move(options));
  EXPECT_TRUE(wait_notification("notifications/five"));
  EXPECT_FALSE(is_closed());
}

TEST_F(ChildSessionTest, LeavesNoProcessAndNoZombieBehind) {
  open_ready(shell(legacy_server("sleep 1000 & trap '' TERM; while :; do sleep 1; done")));
  int pid = connection_->process_id().value_or(-1);
  ASSERT_GT(pid, 0);
  ASSERT_TRUE(is_running(pid));
  connection_->close();
  EXPECT_TRUE(wait_until([pid] { return !exists(pid); })) << "killed although it ignores SIGTERM, and reaped";
  EXPECT_TRUE(wait_until([pid] { return ::kill(-pid, 0) != 0; })) << "its whole group is gone";
}

TEST_F(ChildSessionTest, LetsNoChildOutliveTheThreadsThatServeIt) {
  auto runtime = std::make_unique<net::Runtime>(1);
  runtime->start();
  std::mutex mutex;
  std::condition_variable changed;
  bool is_ready = false;
  auto connection = Connection::create(runtime->worker(0), *runtime, nullptr,
                                       shell(legacy_server("trap '' TERM; while :; do sleep 1; done")),
                                       {.on_ready =
                                            [&](const ServerInfo&) {
                                              std::lock_guard lock(mutex);
                                              is_ready = true;
                                              changed.notify_all();
                                            },
                                        .on_closed = {},
                                        .on_notification = {}});
  connection->start();
  {
    std::unique_lock lock(mutex);
    ASSERT_TRUE(changed.wait_for(lock, test::patience, [&] { return is_ready; }));
  }
  int pid = connection->process_id().value_or(-1);
  ASSERT_GT(pid, 0);
  connection.reset();
  runtime->stop();
  runtime.reset();
  EXPECT_FALSE(exists(pid)) << "there was no time for patience";
}

TEST_F(ChildSessionTest, DoesNotMindWhatAServerWritesToStandardError) {
  open_ready(
      shell(legacy_server("next; yes 'a line for people' | head -n 50000 >&2; head -c 3000000 /dev/zero >&2; reply "
                          "'{\"good\":1}'; cat >/dev/null")));
  EXPECT_THAT(call("tools/list", "{}").body, HasSubstr("good"));
}

TEST_F(ChildSessionTest, EndsAChildThatIsStillStartingWhenItIsClosed) {
  open(shell("echo $$ > /dev/null; exec sleep 1000"));
  connection_->close();
  connection_.reset();
  EXPECT_FALSE(is_closed());
}

TEST_F(ChildSessionTest, LeavesNoDescriptorsAfterManyConnections) {
  auto count = [] {
    std::size_t entries = 0;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      static_cast<void>(entry);
      ++entries;
    }
    return entries;
  };
  std::size_t before = count();
  for (int i = 0; i < 50; ++i) {
    {
      std::lock_guard lock(mutex_);
      closed_.reset();
    }
    open(shell("exit 0"));
    wait_closed();
  }
  connection_.reset();
  EXPECT_TRUE(wait_until([&] { return count() <= before; })) << before << " before, " << count() << " after";
}

TEST_F(ChildSessionTest, TellsTheOwnerHowAServerEndsAndWhatItSaidBefore) {
  open_ready(
      shell(legacy_server("next; reply '{\"last\":\"words\"}'; echo "
                          "'{\"jsonrpc\":\"2.0\",\"method\":\"notifications/bye\"}'; kill -9 $$")));
  EXPECT_THAT(call("tools/list", "{}").body, HasSubstr("words"));
  EXPECT_THAT(wait_closed().message, HasSubstr("signal 9"));
  EXPECT_TRUE(wait_notification("notifications/bye"));
}

TEST_F(ChildSessionTest, HandsOverBatchesOfTheRevisionThatHasThem) {
  open_ready(shell(
      R"sh(next() { IFS= read -r line || exit 0; id=$(printf '%s' "$line" | sed 's/.*"id":"\(h-[0-9]*\)".*/\1/'); }
next; printf '{"jsonrpc":"2.0","id":"%s","error":{"code":-32601,"message":"no"}}\n' "$id"; next
printf '{"jsonrpc":"2.0","id":"%s","result":{"protocolVersion":"2025-03-26","capabilities":{}}}\n' "$id"; next; next
printf '[{"jsonrpc":"2.0","method":"notifications/x"},{"jsonrpc":"2.0","id":"%s","result":{"in":"batch"}}]\n' "$id"
cat >/dev/null)sh"));
  EXPECT_THAT(call("tools/list", "{}").body, HasSubstr("batch"));
  EXPECT_TRUE(wait_notification("notifications/x"));
}

}  // namespace
}  // namespace hive::upstreams
