#include "container/priv_client.h"

#include <cerrno>
#include <cstring>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/strings.h"
#include "base/unique_fd.h"
#include "container/names.h"
#include "protocol/json.h"

namespace hive::container {

namespace {

constexpr std::string_view socket_path = "/run/hive/priv.sock";
constexpr size_t max_answer_bytes = size_t{4} << 20;

Result<UniqueFd> connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path)
    return fail(ErrorCode::invalid_argument, "{}: too long for a socket", path);
  std::memcpy(address.sun_path, path.data(), path.size());
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd) return std::unexpected(system_error(errno, "socket"));
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    std::string_view remedy = error == EACCES ? "; run as root or as a member of hive-core"
                                              : "; run: systemctl enable --now hive-priv.socket";
    return fail(ErrorCode::unavailable, "{}{}", system_error(error, path).message, remedy);
  }
  return fd;
}

Result<void> send_line(int fd, std::string_view line, const std::string& path) {
  std::string text = std::string(line) + "\n";
  std::string_view rest = text;
  while (!rest.empty()) {
    ssize_t count = ::send(fd, rest.data(), rest.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, path));
    rest.remove_prefix(static_cast<size_t>(count));
  }
  ::shutdown(fd, SHUT_WR);
  return {};
}

Result<std::string> receive_all(int fd, const std::string& path, std::chrono::steady_clock::time_point deadline) {
  std::string text;
  char buffer[8192];
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    pollfd waiting{.fd = fd, .events = POLLIN, .revents = 0};
    int ready = left.count() <= 0 ? 0 : ::poll(&waiting, 1, static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return std::unexpected(system_error(errno, path));
    if (ready == 0) return fail(ErrorCode::timed_out, "{}: no answer in time; see journalctl -u hive-priv", path);
    ssize_t count = ::recv(fd, buffer, sizeof buffer, 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::unexpected(system_error(errno, path));
    if (count == 0) return text;
    text.append(buffer, static_cast<size_t>(count));
    if (text.size() > max_answer_bytes) return fail(ErrorCode::resource_exhausted, "{}: the answer is too large", path);
  }
}

Result<PrivAnswer> read_answer(std::string_view text) {
  std::string_view line = trim(text);
  if (line.empty())
    return fail(ErrorCode::unavailable, "hive-priv closed without an answer; see journalctl -u hive-priv");
  line = line.substr(line.rfind('\n') + 1);
  const std::vector<json::Member> members = TRY_CONTEXT("answer of hive-priv", json::parse_object(line));
  PrivAnswer answer;
  auto ok = json::find(members, "ok").and_then(json::decode_boolean);
  if (!ok) return fail(ErrorCode::corrupt, "answer of hive-priv: \"ok\" is neither true nor false");
  answer.ok = *ok;
  answer.result = json::find(members, "result").value_or("{}");
  if (auto error = json::find(members, "error"); error && json::is_object(*error)) {
    const std::vector<json::Member> fields = TRY(json::parse_object(*error));
    answer.code = json::find(fields, "code").and_then(json::decode_string).value_or("");
    answer.message = json::find(fields, "message").and_then(json::decode_string).value_or("");
  }
  return answer;
}

}  // namespace

Result<PrivAnswer> ask_priv(std::string_view request, const Layout& layout, std::chrono::seconds timeout) {
  const auto deadline = std::chrono::steady_clock::now() + timeout;
  const std::string path = layout.at(socket_path);
  UniqueFd fd = TRY(connect_to(path));
  TRY(send_line(fd.get(), request, path));
  return read_answer(TRY(receive_all(fd.get(), path, deadline)));
}

std::string flags_request(const Record& record, const Layout& layout) {
  const std::string agent(agent_of(record.name));
  std::string binds;
  for (const AgentFolder& folder : agent_folders(agent)) {
    if (!binds.empty()) binds += ", ";
    binds += fmt::format(R"({{"host_path": {}, "container_path": {}, "read_only": false}})",
                         json::encode_string(layout.agent(agent) + "/" + std::string(folder.name)),
                         json::encode_string(folder.inside));
  }
  return fmt::format(R"({{"op": "write_nspawn_flags", "container": {}, "binds": [{}], )"
                     R"("isolation": {{"bridge": {}, "gateway_ip": {}}}}})",
                     json::encode_string(record.name), binds, json::encode_string(record.bridge),
                     json::encode_string(record.gateway_ip));
}

std::string container_request(std::string_view op, std::string_view name) {
  return fmt::format(R"({{"op": {}, "container": {}}})", json::encode_string(op), json::encode_string(name));
}

}  // namespace hive::container
