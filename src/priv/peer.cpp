#include "priv/peer.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <vector>

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/socket.h>

#include "base/strings.h"
#include "base/unique_fd.h"
#include "priv/beneath.h"

namespace hive::priv {

namespace {

constexpr size_t max_cgroup_text = size_t{64} << 10;
constexpr size_t lookup_bytes = size_t{64} << 10;

// A number stands for itself, so that a host needs no entry in its user database.
std::optional<std::uint32_t> as_number(const std::string& name) {
  std::uint32_t number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end != name.data() + name.size()) return std::nullopt;
  return number;
}

std::optional<uid_t> uid_of_user(const std::string& name) {
  if (auto number = as_number(name)) return number;
  std::vector<char> buffer(lookup_bytes);
  struct passwd entry{};
  struct passwd* found = nullptr;
  if (::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return std::nullopt;
  }
  return found->pw_uid;
}

std::optional<gid_t> gid_of_group(const std::string& name) {
  if (auto number = as_number(name)) return number;
  std::vector<char> buffer(lookup_bytes);
  struct group entry{};
  struct group* found = nullptr;
  if (::getgrnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) {
    return std::nullopt;
  }
  return found->gr_gid;
}

// The groups that the peer had when it connected.
Result<std::vector<gid_t>> groups_of(int socket, const PeerIds& peer) {
  std::vector<gid_t> groups(256);
  for (int tries = 0;; ++tries) {
    auto size = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &size) == 0) {
      groups.resize(size / sizeof(gid_t));
      groups.push_back(peer.gid);
      return groups;
    }
    if (errno != ERANGE || tries > 0) return std::unexpected(system_error(errno, "ask for the groups of a peer"));
    groups.resize(size / sizeof(gid_t));
  }
}

Result<void> check_not_in_machine(const PeerIds& peer) {
  if (peer.pid <= 0) return fail(ErrorCode::permission_denied, "the peer is a process of another PID namespace");
  std::string path = fmt::format("/proc/{}/cgroup", peer.pid);
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) {
    return fail(ErrorCode::permission_denied, "the peer can't be looked at: {}", system_error(errno, path).message);
  }
  if (is_in_machine(TRY(read_all(file.get(), path, max_cgroup_text)))) {
    return fail(ErrorCode::permission_denied, "the peer is a process of a container");
  }
  return {};
}

}  // namespace

Result<PeerIds> peer_of(int socket) {
  struct ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return std::unexpected(system_error(errno, "ask for the peer of a socket"));
  }
  return PeerIds{.pid = credentials.pid, .uid = credentials.uid, .gid = credentials.gid};
}

Result<void> check_peer(int socket, const PeerIds& peer, const Settings& settings) {
  TRY(check_not_in_machine(peer));
  if (peer.uid == 0) return {};
  for (const std::string& user : settings.peer_users) {
    if (uid_of_user(user) == peer.uid) return {};
  }
  auto groups = TRY(groups_of(socket, peer));
  for (const std::string& name : settings.peer_groups) {
    auto group = gid_of_group(name);
    if (group && std::ranges::find(groups, *group) != groups.end()) return {};
  }
  return fail(ErrorCode::permission_denied, "uid {} is neither root nor named in peer_users or peer_groups", peer.uid);
}

bool is_in_machine(std::string_view cgroups) {
  for (std::string_view line : split(cgroups, '\n')) {
    size_t colon = line.find(':');
    if (colon != std::string_view::npos) colon = line.find(':', colon + 1);
    if (colon == std::string_view::npos) continue;
    for (std::string_view part : split(line.substr(colon + 1), '/')) {
      // A container can be given a slice of its own; the name of its scope or service tells it then.
      bool scope =
          (part.starts_with("machine-") && part.ends_with(".scope")) ||
          ((part.starts_with("container@") || part.starts_with("systemd-nspawn@")) && part.ends_with(".service"));
      if (part == "machine.slice" || scope) return true;
    }
  }
  return false;
}

}  // namespace hive::priv
