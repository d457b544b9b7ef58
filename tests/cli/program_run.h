#pragma once

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/unique_fd.h"
#include "cli/app.h"
#include "net/http/scripted_server.h"

namespace hive::cli::test {

/// What a run of the program left behind.
struct ProgramRun {
  int exit_code = -1;
  std::string out;
  std::string error;
};

inline std::string content_of(const UniqueFd& fd) {
  std::string content;
  char buffer[4096];
  ::lseek(fd.get(), 0, SEEK_SET);
  for (ssize_t count = 0; (count = ::read(fd.get(), buffer, sizeof buffer)) > 0;)
    content.append(buffer, static_cast<size_t>(count));
  return content;
}

using Variables = std::map<std::string, std::string, std::less<>>;

/// Runs `myrmex WORDS...` in this process, with an environment of its own.
inline ProgramRun run_program(const std::vector<std::string>& words, const Variables& variables = {}) {
  UniqueFd out(::memfd_create("out", MFD_CLOEXEC));
  UniqueFd error(::memfd_create("error", MFD_CLOEXEC));
  Output output(out.get(), error.get());
  Environment environment = [&variables](std::string_view name) -> std::optional<std::string> {
    auto found = variables.find(name);
    return found == variables.end() || found->second.empty() ? std::nullopt : std::optional(found->second);
  };
  ProgramRun run;
  run.exit_code = cli::run(words, environment, output);
  run.out = content_of(out);
  run.error = content_of(error);
  return run;
}

/// A folder that is gone with the test.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    char pattern[] = "/tmp/hive_cli_test.XXXXXX";
    path_ = ::mkdtemp(pattern);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::string& path() const { return path_; }
  /// Writes a file below the folder and returns its path.
  std::string write(const std::string& name, std::string_view content, unsigned mode = 0600) {
    std::string path = path_ + "/" + name;
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    if (!write_file_atomically(path, content, mode)) std::abort();
    return path;
  }

 private:
  std::string path_;
};

/// The bodies that the gateway in a test answers with, and what it was asked.
class FakeGateway {
 public:
  struct Answer {
    int status = 200;
    std::string body;
    std::string headers = "Content-Type: application/json\r\n";
  };

  FakeGateway()
      : server_([this](hive::test::Peer& peer) {
          for (std::string request = peer.read_request(); !request.empty(); request = peer.read_request()) {
            std::string path = request.substr(request.find(' ') + 1);
            path = path.substr(0, path.find(' '));
            requests.push_back(request);
            auto found = answers.find(path);
            if (found == answers.end()) found = answers.find(path.substr(0, path.find('?')));
            const Answer& answer = found == answers.end() ? not_found : found->second;
            peer.answer(answer.status, answer.body, answer.headers);
          }
        }) {}

  [[nodiscard]] std::string url() const { return server_.url(); }
  [[nodiscard]] Variables variables() const { return {{"MYRMEX_URL", url()}, {"MYRMEX_TOKEN", "secret-token"}}; }
  [[nodiscard]] std::string last_body() const {
    return requests.empty() ? "" : requests.back().substr(requests.back().find("\r\n\r\n") + 4);
  }

  std::map<std::string, Answer, std::less<>> answers;
  std::vector<std::string> requests;
  Answer not_found{404, R"({"title":"Not Found","status":404,"code":"not_found","detail":"no such path"})"};

 private:
  hive::test::ScriptedServer server_;
};

}  // namespace hive::cli::test
