#include "exec/environment.h"

#include <cerrno>

#include <grp.h>
#include <pwd.h>
#include <unistd.h>

#include "base/strings.h"
#include "exec/executable.h"

namespace hive::exec {

namespace {

constexpr size_t lookup_buffer_bytes = size_t{64} << 10;

}  // namespace

Result<Account> find_account(const std::string& name) {
  std::vector<char> buffer(lookup_buffer_bytes);
  passwd entry{};
  passwd* found = nullptr;
  int error = ::getpwnam_r(name.c_str(), &entry, buffer.data(), buffer.size(), &found);
  if (error != 0) return std::unexpected(system_error(error, "look up user " + quote(name)));
  if (found == nullptr) return fail(ErrorCode::not_found, "there is no user {} on this machine", quote(name));
  Account account{.credentials = {.uid = entry.pw_uid, .gid = entry.pw_gid, .groups = {}},
                  .name = name,
                  .home = entry.pw_dir != nullptr && *entry.pw_dir == '/' ? entry.pw_dir : "/"};
  int count = 64;
  account.credentials.groups.resize(static_cast<size_t>(count));
  if (::getgrouplist(name.c_str(), entry.pw_gid, account.credentials.groups.data(), &count) < 0) {
    account.credentials.groups.resize(static_cast<size_t>(count));
    if (::getgrouplist(name.c_str(), entry.pw_gid, account.credentials.groups.data(), &count) < 0) {
      return fail(ErrorCode::io, "the groups of user {} cannot be read", quote(name));
    }
  }
  account.credentials.groups.resize(static_cast<size_t>(count));
  return account;
}

Account current_account() {
  Account account{.credentials = {.uid = ::geteuid(), .gid = ::getegid(), .groups = {}}, .name = {}, .home = "/"};
  std::vector<char> buffer(lookup_buffer_bytes);
  passwd entry{};
  passwd* found = nullptr;
  if (::getpwuid_r(account.credentials.uid, &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) {
    account.name = entry.pw_name;
    if (entry.pw_dir != nullptr && *entry.pw_dir == '/') account.home = entry.pw_dir;
  }
  return account;
}

Result<std::vector<std::string>> build_environment(const Account& account,
                                                   const std::map<std::string, std::string>& extra) {
  std::map<std::string, std::string> variables = {
      {"PATH", std::string(fixed_path)},
      {"LANG", "C.UTF-8"},
      {"HOME", account.home},
      {"TERM", "dumb"},
      // Programs of systemd print colours, hyperlinks and pages even without a terminal when told so elsewhere.
      {"SYSTEMD_COLORS", "0"},
      {"SYSTEMD_URLIFY", "0"},
      {"SYSTEMD_PAGER", ""},
      {"PAGER", "cat"},
  };
  if (!account.name.empty()) {
    variables["USER"] = account.name;
    variables["LOGNAME"] = account.name;
  }
  for (const auto& [name, value] : extra) {
    if (name.empty() || name.find('=') != std::string::npos || name.find('\0') != std::string::npos) {
      return fail(ErrorCode::invalid_argument, "{} is not a name for an environment variable", quote(name));
    }
    if (value.find('\0') != std::string::npos) {
      return fail(ErrorCode::invalid_argument, "the value of environment variable {} holds a NUL character", name);
    }
    variables[name] = value;
  }
  std::vector<std::string> environment;
  environment.reserve(variables.size());
  for (const auto& [name, value] : variables)
    environment.push_back(name + "=" + value);
  return environment;
}

}  // namespace hive::exec
