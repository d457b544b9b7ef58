#include <atomic>
#include <thread>

#include <sys/stat.h>

#include "agent/command_tool.h"
#include "agent/tools/file_access.h"
#include "agent/tools/host_facts.h"
#include "agent/tools/journal.h"
#include "agent/tools/metrics_sampler.h"
#include "agent_fixture.h"
#include "protocol/agent_protocol.h"

namespace hive::agent {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(PlainName, StartsWithALetterOrDigitAndHoldsNothingElse) {
  for (std::string_view name : {"nginx", "getty@tty1.service", "0ad", "a-b_c.d"})
    EXPECT_TRUE(is_plain_name(name, "@._-")) << name;
  for (std::string_view name : {"", "-x", "--x", ".hidden", "a b", "a/b", "a\n", "a;b", "n\xc3\xa4", "@x"})
    EXPECT_FALSE(is_plain_name(name, "@._-")) << name;
  EXPECT_FALSE(is_plain_name(std::string(257, 'a'), ""));
}

class TypedToolsTest : public AgentTest {
 protected:
  std::string refusal(const std::string& tool, const std::string& arguments) {
    Answer answer = call(tool, arguments);
    return answer.is_error() ? answer.error_message() : answer.text();
  }
};

TEST_F(TypedToolsTest, OperandsThatLookLikeOptionsAreRefused) {
  allow("systemctl", ".*");
  allow("kubectl", ".*");
  allow("dpkg", ".*");
  for (std::string name : {"--x", "-H", "../x", "a b", "a;b", ""}) {
    EXPECT_THAT(refusal("service_control", R"({"action":"status","service":")" + name + R"("})"),
                HasSubstr("Invalid service name"));
    if (name.empty()) continue;
    EXPECT_THAT(refusal("k8s_get", R"({"resource":"pods","namespace":")" + name + R"("})"),
                HasSubstr("Invalid namespace"));
    EXPECT_THAT(refusal("package_query", R"({"manager":"dpkg","name":")" + name + R"("})"),
                HasSubstr("Invalid package name"));
    EXPECT_THAT(refusal("k8s_get", R"({"resource":")" + name + R"("})"), HasSubstr("Invalid resource"));
  }
  EXPECT_THAT(refusal("service_control", R"({"action":"enable","service":"nginx"})"), HasSubstr("Invalid action"));
  EXPECT_THAT(refusal("k8s_get", R"({"resource":"pods,secrets"})"), HasSubstr("Invalid resource"));
  EXPECT_THAT(refusal("k8s_get", R"({"resource":"Pods"})"), HasSubstr("Invalid resource"));
  EXPECT_THAT(refusal("package_query", R"({"manager":"pip"})"), HasSubstr("Invalid manager"));
}

TEST_F(TypedToolsTest, EveryProgramNeedsItsAllowlistEntry) {
  EXPECT_THAT(refusal("service_control", R"({"action":"status","service":"nginx"})"),
              HasSubstr("\"systemctl\" is not in the approved allowlist"));
  EXPECT_THAT(refusal("container_ps", ""), HasSubstr("\"docker\" is not in the approved allowlist"));
  EXPECT_THAT(refusal("k8s_get", R"({"resource":"pods"})"), HasSubstr("\"kubectl\" is not in the approved allowlist"));
  EXPECT_THAT(refusal("package_query", R"({"manager":"dnf"})"), HasSubstr("\"dnf\" is not in the approved allowlist"));
}

TEST_F(TypedToolsTest, ThePatternSeesTheWholeArgumentVector) {
  allow("dpkg", "-l bash");
  allow("docker", "ps");
  EXPECT_THAT(refusal("package_query", R"({"manager":"dpkg","name":"zsh"})"), HasSubstr("do not match"));
  EXPECT_THAT(refusal("container_ps", R"({"all":true})"), HasSubstr("do not match"));
  EXPECT_EQ(call("container_ps", R"({"all":1})").error_code(), -32602);
  EXPECT_EQ(call("package_query", R"({"manager":"dpkg","name":"bash"})").outcome(), "success");
}

TEST_F(AgentTest, GetMetricsAnswersAtOnceWithAllKeys) {
  start();
  // It does not wait to measure anything. A busy machine may hold a call up, but not each of fifty.
  Answer answer;
  bool at_once = false;
  for (int i = 0; i < 50 && !at_once; ++i) {
    auto begin = std::chrono::steady_clock::now();
    answer = call("get_metrics", "");
    at_once = std::chrono::steady_clock::now() - begin < milliseconds(90);
  }
  EXPECT_TRUE(at_once);
  auto metrics = json::parse(answer.text());
  ASSERT_TRUE(metrics);
  for (const char* key :
       {"cpu_usage_percent", "load_avg_1m", "load_avg_5m", "load_avg_15m", "mem_total_mb", "mem_free_mb", "mem_used_mb",
        "mem_used_percent", "disk_total_gb", "disk_used_gb", "disk_free_gb", "disk_used_percent"}) {
    ASSERT_TRUE(metrics->as_object().contains(key)) << key;
    EXPECT_TRUE(metrics->at(key).is_number()) << key;
  }
  EXPECT_GT(metrics->at("mem_total_mb").to_number<double>(), 0);
  EXPECT_EQ(boost::json::serialize(answer.structured()), boost::json::serialize(*metrics));
}

TEST_F(AgentTest, GetSystemInfoHasListsAndNeverNull) {
  auto info = json::parse(call("get_system_info", "").text());
  ASSERT_TRUE(info);
  EXPECT_TRUE(info->at("running_services").is_array());
  EXPECT_TRUE(info->at("open_ports").is_array());
  EXPECT_EQ(info->at("supported_tools").as_array().size(), 9U);
  EXPECT_FALSE(info->at("os_version").as_string().empty());
}

// A folder that looks like /proc and a cgroup mount.
class MetricsTest : public testing::Test {
 protected:
  MetricsTest() {
    std::filesystem::create_directories(folder_ / "self");
    std::filesystem::create_directories(folder_ / "cgroup");
    folder_.write("meminfo", "MemTotal:    8000 kB\nMemFree:     1000 kB\nMemAvailable:    6000 kB\n");
    folder_.write("loadavg", "0.50 1.25 2.00 1/234 5678\n");
    stat("cpu  100 0 100 800 0 0 0 0 0 0");
    mountinfo("");
  }
  void stat(const std::string& line) { rewrite("stat", line + "\ncpu0 1 2 3 4\n"); }
  void mountinfo(const std::string& line) { rewrite("self/mountinfo", line); }
  // In place, because the sampler keeps the files open.
  void rewrite(const std::string& name, const std::string& text) { folder_.write(name, text); }

  std::unique_ptr<MetricsSampler> sampler() {
    auto made = MetricsSampler::create({.proc = folder_.path(), .disk = "/"}, clock_);
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }

  TemporaryFolder folder_;
  ManualClock clock_;
};

TEST_F(MetricsTest, MemoryInUseIsWhatIsNotAvailable) {
  auto metrics = sampler()->sample();
  ASSERT_TRUE(metrics);
  EXPECT_DOUBLE_EQ(metrics->mem_total_mb, 8000.0 / 1024);
  EXPECT_DOUBLE_EQ(metrics->mem_free_mb, 1000.0 / 1024);
  EXPECT_DOUBLE_EQ(metrics->mem_used_mb, 2000.0 / 1024);
  EXPECT_DOUBLE_EQ(metrics->mem_used_percent, 25.0);
  EXPECT_DOUBLE_EQ(metrics->load_avg_5m, 1.25);
  EXPECT_FALSE(metrics->memory_of_container);
}

TEST_F(MetricsTest, CpuUsageIsThatSinceTheLastSample) {
  auto sampler = this->sampler();
  stat("cpu  130 0 120 850 0 0 0 0 0 0");  // 50 busy of 100
  EXPECT_DOUBLE_EQ(sampler->sample()->cpu_usage_percent, 50.0);
  clock_.advance(milliseconds(150));
  stat("cpu  130 0 120 940 10 0 0 0 0 0");  // waiting for disks is idle
  EXPECT_DOUBLE_EQ(sampler->sample()->cpu_usage_percent, 0.0);
  clock_.advance(milliseconds(150));
  stat("cpu  130 0 120 940 10 0 0 100 0 0");  // stolen time was wanted and not had
  EXPECT_DOUBLE_EQ(sampler->sample()->cpu_usage_percent, 100.0);
}

TEST_F(MetricsTest, CallsWithinTheLifeOfASampleShareIt) {
  auto sampler = this->sampler();
  double before = sampler->sample()->mem_used_percent;
  rewrite("meminfo", "MemTotal:    8000 kB\nMemFree:     1000 kB\nMemAvailable:    1000 kB\n");
  clock_.advance(milliseconds(50));
  EXPECT_DOUBLE_EQ(sampler->sample()->mem_used_percent, before);
  clock_.advance(milliseconds(60));
  EXPECT_GT(sampler->sample()->mem_used_percent, before);
}

TEST_F(MetricsTest, ShortOrOddLinesOfStatDoNoHarm) {
  for (std::string line : {"cpu  1 2 3 4", "cpu 1", "", "intr 5", "cpu a b c d e"}) {
    stat(line);
    auto made = MetricsSampler::create({.proc = folder_.path(), .disk = "/"}, clock_);
    ASSERT_TRUE(made);
    EXPECT_DOUBLE_EQ((*made)->sample()->cpu_usage_percent, 0.0) << line;
  }
}

TEST_F(MetricsTest, AContainersLimitsReplaceTheMachines) {
  mountinfo("30 24 0:27 / " + (folder_ / "cgroup") + " rw,nosuid - cgroup2 cgroup2 rw\n");
  folder_.write("cgroup/memory.max", "4096000\n");
  folder_.write("cgroup/memory.current", "2048000\n");
  folder_.write("cgroup/memory.stat", "anon 1\ninactive_file 1024000\n");
  folder_.write("cgroup/cpu.max", "50000 100000\n");
  folder_.write("cgroup/cpu.stat", "usage_usec 1000000\nuser_usec 1\n");
  auto sampler = this->sampler();
  clock_.advance(seconds(10));
  rewrite("cgroup/cpu.stat", "usage_usec 2000000\nuser_usec 1\n");  // 1 s in 10 s of half a processor
  auto metrics = sampler->sample();
  ASSERT_TRUE(metrics);
  EXPECT_TRUE(metrics->memory_of_container);
  EXPECT_TRUE(metrics->cpu_of_container);
  EXPECT_DOUBLE_EQ(metrics->mem_total_mb, 4000.0 / 1024);
  EXPECT_DOUBLE_EQ(metrics->mem_used_percent, 25.0);
  EXPECT_NEAR(metrics->cpu_usage_percent, 20.0, 0.001);
  EXPECT_THAT(to_json(*metrics), HasSubstr(R"("source":{"cpu":"container","memory":"container"})"));
}

TEST_F(MetricsTest, AnUnlimitedCgroupIsTheMachine) {
  mountinfo("30 24 0:27 / " + (folder_ / "cgroup") + " rw - cgroup cgroup rw,memory,cpu,cpuacct\n");
  folder_.write("cgroup/memory.limit_in_bytes", "9223372036854771712\n");
  folder_.write("cgroup/memory.usage_in_bytes", "1\n");
  folder_.write("cgroup/cpu.cfs_quota_us", "-1\n");
  folder_.write("cgroup/cpu.cfs_period_us", "100000\n");
  folder_.write("cgroup/cpuacct.usage", "5\n");
  auto metrics = sampler()->sample();
  ASSERT_TRUE(metrics);
  EXPECT_FALSE(metrics->memory_of_container);
  EXPECT_FALSE(metrics->cpu_of_container);
}

TEST(HostFacts, FindsListeningPortsOnce) {
  EXPECT_THAT(listening_ports_in("  sl  local_address rem_address   st tx_queue\n"
                                 "   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n"
                                 "   1: 00000000:0016 00000000:0000 0A 00000000:00000000\n"
                                 "   2: 0100007F:1F90 0100007F:9999 01 00000000:00000000\n"
                                 "   3: 00000000000000000000000000000000:0016 0:0 0A 0\n"
                                 "   4: nonsense 0:0 0A 0\n   5: 0:zz 0:0 0A\n"),
              testing::ElementsAre("8080", "22"));
  EXPECT_TRUE(listening_ports_in("").empty());
}

TEST(HostFacts, ReadsTheNameOfTheSystem) {
  TemporaryFolder root;
  EXPECT_EQ(os_version(root.path()), "Linux");
  std::filesystem::create_directories(root / "etc");
  root.write("etc/issue", "Debian GNU/Linux 12 \\n \\l\n");
  EXPECT_EQ(os_version(root.path()), "Debian GNU/Linux 12 \\n \\l");
  root.write("etc/os-release", "NAME=x\nPRETTY_NAME=\"Some Linux 1.0\"\n");
  EXPECT_EQ(os_version(root.path()), "Some Linux 1.0");
}

TEST(HostFacts, ReadsServicesFromAListing) {
  EXPECT_THAT(service_names("  cron.service loaded active running x\nssh.service loaded\nfoo.socket x\n\n"),
              testing::ElementsAre("cron", "ssh"));
}

TEST(Journal, BuildsArgumentsThatCannotBeOptions) {
  auto arguments =
      journal_arguments({.lines = 20, .unit = "ssh.service", .since = "2026-11-30T12:00:00Z", .priority = "err"});
  ASSERT_TRUE(arguments) << arguments.error().message;
  EXPECT_THAT(*arguments,
              testing::ElementsAre("--no-pager", "--quiet", "--output=short-iso", "--lines=20", "--unit=ssh.service",
                                   "--since=2026-11-30 12:00:00 UTC", "--priority=err"));
}

TEST(Journal, RefusesValuesOfAnyOtherForm) {
  for (std::string unit : {"", "--vacuum-size=1", "a b", "*", "../x", "x\n"})
    EXPECT_FALSE(journal_arguments({.unit = unit, .since = {}, .priority = {}})) << unit;
  for (std::string since : {"", "-", "yesterday; rm", "-15parsecs", "2026-1-1", "-1234567s", "now --x"})
    EXPECT_FALSE(journal_arguments({.unit = {}, .since = since, .priority = {}})) << since;
  for (std::string since : {"-15min", "-2h", "2026-11-30", "2026-11-30 12:00:00"})
    EXPECT_TRUE(journal_arguments({.unit = {}, .since = since, .priority = {}})) << since;
  for (std::string priority : {"", "7", "error", "ERR"})
    EXPECT_FALSE(journal_arguments({.unit = {}, .since = {}, .priority = priority})) << priority;
}

TEST(Journal, KeepsAMessageOfSeveralLinesTogether) {
  EXPECT_THAT(journal_entries("2026 a: one\n        two\n2026 b: three\n"),
              testing::ElementsAre("2026 a: one\n        two", "2026 b: three"));
  EXPECT_TRUE(journal_entries("").empty());
}

TEST_F(AgentTest, ReadLogsReturnsTheLastLines) {
  config_.log_paths = {folder_ / "missing", folder_.write("log", "l1\nl2\nl3\nl4\nl5\n")};
  Answer answer = call("read_logs", R"({"lines":2})");
  EXPECT_EQ(answer.text(), "l4\nl5");
  EXPECT_EQ(answer.structured().at("source").as_string(), folder_ / "log");
  EXPECT_EQ(answer.structured().at("lines").as_array().size(), 2U);
  EXPECT_EQ(call("read_logs", "").text(), "l1\nl2\nl3\nl4\nl5");
}

TEST_F(AgentTest, ReadLogsRefusesArgumentsOfTheWrongType) {
  config_.log_paths = {folder_.write("log", "x\n")};
  for (std::string arguments :
       {R"({"lines":"5"})", R"({"lines":1.5})", R"({"unit":7})", R"({"unit":"--x"})", R"({"since":"whenever"})",
        R"({"priority":"loud"})", R"({"lines":0})", R"({"lines":-1})", R"({"lines":101})", "[]"})
    EXPECT_EQ(call("read_logs", arguments).error_code(), -32602) << arguments;
}

TEST_F(AgentTest, ReadLogsSaysWhichNumbersOfLinesItTakes) {
  EXPECT_EQ(call("read_logs", R"({"lines":101})").error_message(), "argument \"lines\" must be from 1 to 100");
}

TEST_F(AgentTest, ReadLogsFitsIntoALineWhateverTheLogHolds) {
  config_.log_paths = {folder_ / "log"};
  for (char byte : {'\0', '\x1b', '\x7f'}) {
    folder_.write("log", std::string(600'000, byte) + "\nthe end\n");
    Answer answer = call("read_logs", "");
    ASSERT_FALSE(answer.is_error());
    EXPECT_EQ(answer.outcome(), "success");
    EXPECT_THAT(answer.text(), testing::AllOf(StartsWith("[...]"), testing::EndsWith("\nthe end")));
    EXPECT_LT(boost::json::serialize(answer.message).size(), protocol::default_max_line_bytes);
    EXPECT_GT(answer.text().size(), 200'000U);
  }
}

TEST_F(AgentTest, ReadLogsSaysWhereItFoundNothing) {
  config_.log_paths = {folder_ / "missing"};
  Answer answer = call("read_logs", "");
  // On a machine with a journal its entries come instead.
  if (answer.structured().at("lines").as_array().empty()) {
    EXPECT_THAT(answer.text(), StartsWith("no log found (looked at " + folder_ / "missing" + " and the journal"));
  }
}

TEST_F(AgentTest, ReadLogsIsQuickOnAnEnormousFile) {
  std::string path = folder_.write("log", "");
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
  std::ofstream(path, std::ios::app) << "\nlast but one\nlast\n";
  config_.log_paths = {path};
  auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(call("read_logs", R"({"lines":2})").text(), "last but one\nlast");
  call("read_logs", R"({"lines":100})");
  // Reading all of it would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, seconds(30));
}

TEST_F(AgentTest, ReadLogsDoesNotWaitForAPipe) {
  std::string path = folder_ / "log";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  config_.log_paths = {path};
  Answer answer = call("read_logs", "");
  EXPECT_EQ(answer.error_code(), -32603);
  EXPECT_THAT(answer.error_message(), HasSubstr("not a regular file"));
}

TEST_F(AgentTest, ReadLogsHandlesALineLongerThanTheReferenceCould) {
  config_.log_paths = {folder_.write("log", std::string(200'000, 'x') + "\nend\n")};
  EXPECT_EQ(call("read_logs", R"({"lines":1})").text(), "end");
  EXPECT_EQ(call("read_logs", R"({"lines":2})").text().size(), 200'004U);
}

TEST_F(AgentTest, ReadLogsFollowsALinkThatIsPointedElsewhere) {
  folder_.write("day1", "first day\n");
  folder_.write("day2", "second day\n");
  std::string link = folder_ / "log";
  std::filesystem::create_symlink("day1", link);
  config_.log_paths = {link};
  EXPECT_EQ(call("read_logs", "").text(), "first day");
  std::filesystem::remove(link);
  std::filesystem::create_symlink("day2", link);
  EXPECT_EQ(call("read_logs", "").text(), "second day");
}

TEST_F(AgentTest, ASuccessfulLogThatQuotesTheMarkerIsASuccess) {
  config_.log_paths = {folder_.write("log", "Command failed/rejected: x is not in the approved allowlist\n")};
  Answer answer = call("read_logs", "");
  EXPECT_EQ(answer.outcome(), "success");
  EXPECT_FALSE(answer.flagged());
}

class FileReadTest : public AgentTest {
 protected:
  FileReadTest() {
    std::filesystem::create_directories(folder_ / "root/sub");
    std::filesystem::create_directories(folder_ / "root-secret");
    folder_.write("root/file", "content\n");
    folder_.write("root/sub/a..b", "dots\n");
    folder_.write("secret", "secret\n");
    folder_.write("root-secret/x", "secret\n");
    config_.file_read_roots = {folder_ / "root"};
  }
  Answer read(const std::string& path) { return call("file_read", "{\"path\":" + json::encode_string(path) + "}"); }
};

TEST_F(FileReadTest, ReadsAFileUnderARoot) {
  Answer answer = read(folder_ / "root/file");
  EXPECT_EQ(answer.text(), "content\n");
  EXPECT_EQ(answer.structured().at("size_bytes").as_int64(), 8);
  EXPECT_FALSE(answer.structured().at("truncated").as_bool());
  EXPECT_EQ(read(folder_ / "root//./sub///a..b").text(), "dots\n");
}

TEST_F(FileReadTest, RefusesWhatIsNotUnderARoot) {
  for (std::string path :
       {folder_ / "secret", folder_ / "root-secret/x", std::string("/etc/shadow"), std::string("/")}) {
    Answer answer = read(path);
    EXPECT_EQ(answer.outcome(), "denied") << path;
    EXPECT_THAT(answer.text(), StartsWith("Command failed/rejected: "));
    EXPECT_THAT(answer.text(), HasSubstr("is not in the approved allowlist"));
  }
}

TEST_F(FileReadTest, RefusesPathsOfABadForm) {
  EXPECT_THAT(read("").error_message(), HasSubstr("absolute path"));
  EXPECT_THAT(read("etc/passwd").error_message(), HasSubstr("absolute path"));
  EXPECT_THAT(read(folder_ / "root/../secret").error_message(), HasSubstr("traversal"));
  EXPECT_THAT(read(folder_ / "root/..").error_message(), HasSubstr("traversal"));
  EXPECT_EQ(read((folder_ / "root/file") + std::string("\0x", 2)).error_code(), -32602);
  EXPECT_EQ(read("/" + std::string(5000, 'a')).error_code(), -32602);
}

TEST_F(FileReadTest, ALinkOutOfTheRootIsRefusedAndOneWithinIsFollowed) {
  std::filesystem::create_symlink("../secret", folder_ / "root/out");
  std::filesystem::create_symlink(folder_ / "secret", folder_ / "root/out-absolute");
  std::filesystem::create_symlink("..", folder_ / "root/up");
  std::filesystem::create_symlink("file", folder_ / "root/in");
  std::filesystem::create_symlink(folder_ / "root/sub/a..b", folder_ / "root/in-absolute");
  for (std::string name : {"out", "out-absolute", "up/secret"}) {
    Answer answer = read(folder_ / ("root/" + name));
    EXPECT_EQ(answer.outcome(), "denied") << name;
    EXPECT_THAT(answer.text(), testing::Not(HasSubstr("secret\n")));
  }
  EXPECT_EQ(read(folder_ / "root/in").text(), "content\n");
  EXPECT_EQ(read(folder_ / "root/in-absolute").text(), "dots\n");
}

TEST_F(FileReadTest, NeverReadsOutsideWhileAFolderIsSwappedForALink) {
  std::filesystem::create_directories(folder_ / "elsewhere");
  folder_.write("elsewhere/target", "secret\n");
  std::filesystem::create_directories(folder_ / "root/real");
  folder_.write("root/real/target", "public\n");
  std::atomic<bool> stop = false;
  std::thread swapper([&] {
    std::string name = folder_ / "root/swap";
    while (!stop) {
      std::error_code ignored;
      std::filesystem::create_symlink("real", name, ignored);
      std::filesystem::remove(name, ignored);
      std::filesystem::create_symlink("../elsewhere", name, ignored);
      std::filesystem::remove(name, ignored);
    }
  });
  for (int i = 0; i < 300; ++i)
    EXPECT_THAT(read(folder_ / "root/swap/target").text(), testing::Not(HasSubstr("secret\n")));
  stop = true;
  swapper.join();
}

TEST_F(FileReadTest, OnlyRegularFilesAreReadAndNothingBlocks) {
  ASSERT_EQ(::mkfifo((folder_ / "root/pipe").c_str(), 0600), 0);
  for (std::string path : {folder_ / "root/pipe", folder_ / "root", folder_ / "root/sub"}) {
    Answer answer = read(path);
    EXPECT_EQ(answer.outcome(), "denied") << path;
    EXPECT_THAT(answer.text(), HasSubstr("not a regular file"));
  }
}

TEST_F(FileReadTest, FilesOfTheKernelAreReadUnlessTheyAreSecretOrEndless) {
  config_.file_read_roots = {"/proc", "/dev", "/sys"};
  Answer meminfo = read("/proc/meminfo");
  EXPECT_EQ(meminfo.outcome(), "success");
  EXPECT_THAT(meminfo.text(), HasSubstr("MemTotal:"));
  EXPECT_THAT(read("/proc/self/status").text(), HasSubstr("Name:"));
  for (std::string path :
       {"/proc/kcore", "/proc/kmsg", "/proc/kallsyms", "/proc/self/environ", "/proc/self/mem", "/proc/1/environ",
        "/proc/self/maps", "/proc/sysrq-trigger", "/dev/zero", "/dev/null", "/proc/self/fd/0", "/proc/self/exe",
        "/proc/self/root/etc/hostname", "/sys/kernel/tracing/trace_pipe"}) {
    std::string outcome = read(path).outcome();
    EXPECT_NE(outcome, "success") << path;
  }
}

TEST_F(FileReadTest, ALongFileIsCutAtACharacterAndSaysSo) {
  std::string text = "x";
  while (text.size() < 100'000)
    text += "\xe2\x82\xac";
  folder_.write("root/long", text);
  Answer answer = read(folder_ / "root/long");
  EXPECT_TRUE(answer.text().ends_with("\xe2\x82\xac\n[truncated at 64KB]"));
  EXPECT_TRUE(answer.structured().at("truncated").as_bool());
  EXPECT_EQ(answer.structured().at("size_bytes").as_int64(), static_cast<std::int64_t>(text.size()));
  EXPECT_THAT(answer.text(), testing::Not(HasSubstr("\xef\xbf\xbd")));
}

TEST_F(FileReadTest, BinaryContentComesExactly) {
  folder_.write("root/binary", std::string("\x00\x01\xff", 3));
  Answer answer = read(folder_ / "root/binary");
  EXPECT_EQ(answer.structured().at("content_base64").as_string(), "AAH/");
}

TEST_F(FileReadTest, AMissingFileIsAFailure) {
  Answer answer = read(folder_ / "root/missing");
  EXPECT_EQ(answer.outcome(), "failure");
  EXPECT_THAT(answer.text(), HasSubstr("does not exist"));
}

TEST_F(FileReadTest, WithoutRootsNothingIsReadable) {
  config_.file_read_roots.clear();
  EXPECT_EQ(read(folder_ / "root/file").outcome(), "denied");
}

TEST_F(FileReadTest, AnEntryForCatAdmitsPathsAsInTheReference) {
  config_.file_read_roots.clear();
  allow("cat", folder_.path() + "/root/[a-z-]+");
  EXPECT_EQ(read(folder_ / "root/file").text(), "content\n");
  EXPECT_EQ(read(folder_ / "secret").outcome(), "denied");
  std::filesystem::create_symlink(folder_ / "secret", folder_ / "root/out");
  Answer answer = read(folder_ / "root/out");
  EXPECT_EQ(answer.outcome(), "denied") << "where a link leads must be admitted too";
}

}  // namespace
}  // namespace hive::agent
