#include "priv/bind_rules.h"

#include <algorithm>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>

#include "base/strings.h"
#include "priv/beneath.h"
#include "priv/ipv4.h"
#include "priv/names.h"

namespace hive::priv {

namespace {

// A target that ends in "/" allows what lies below it, but not itself.
bool is_allowed_target(std::string_view path, std::string_view allowed) {
  return allowed.ends_with('/') ? path.starts_with(allowed) : is_at_or_below(path, allowed);
}

}  // namespace

Outcome<void> check_binds(const std::vector<Bind>& binds, std::string_view agent, const Settings& settings,
                          const Layout& layout) {
  auto sources = settings.sources_of(agent);
  auto targets = settings.targets_of(agent);
  for (size_t i = 0; i < binds.size(); ++i) {
    const Bind& bind = binds[i];
    if (auto plain = check_plain_path(bind.host_path); !plain) {
      return refuse(Code::bad_request, "binds[{}].host_path: {}", i, plain.error().message);
    }
    if (auto plain = check_plain_path(bind.container_path); !plain) {
      return refuse(Code::bad_request, "binds[{}].container_path: {}", i, plain.error().message);
    }
    auto holds_source = [&](const std::string& folder) { return is_at_or_below(bind.host_path, folder); };
    if (std::ranges::none_of(sources, holds_source) || belongs_to_the_host(bind.host_path, layout)) {
      return refuse(Code::denied, "binds[{}].host_path: {} is not a folder that agent {} may have", i,
                    quote(bind.host_path), agent);
    }
    if (auto shared = settings.shared_folder_above(bind.host_path)) {
      return refuse(Code::denied, "binds[{}].host_path: {} lies in {}, which other agents can change; bind that itself",
                    i, quote(bind.host_path), *shared);
    }
    auto holds_target = [&](const std::string& allowed) { return is_allowed_target(bind.container_path, allowed); };
    if (std::ranges::none_of(targets, holds_target)) {
      return refuse(Code::denied, "binds[{}].container_path: {} is not a place where agent {} may have a bind", i,
                    quote(bind.container_path), agent);
    }
    for (size_t k = 0; k < i; ++k) {
      if (is_at_or_below(bind.container_path, binds[k].container_path) ||
          is_at_or_below(binds[k].container_path, bind.container_path)) {
        return refuse(Code::bad_request, "binds[{}].container_path and binds[{}].container_path lie in each other", k,
                      i);
      }
    }
  }
  return {};
}

Result<void> check_bind_source(int anchor, const std::string& path) {
  TRY(check_plain_path(path));
  size_t slash = path.rfind('/');
  UniqueFd parent = TRY(open_trusted_folder(anchor, slash == 0 ? "/" : path.substr(0, slash)));
  UniqueFd source = open_beneath(parent.get(), path.c_str() + slash + 1, O_PATH | O_NOFOLLOW);
  if (!source) return std::unexpected(system_error(errno, path));
  struct stat status{};
  if (::fstat(source.get(), &status) != 0) return std::unexpected(system_error(errno, path));
  if (S_ISLNK(status.st_mode)) return fail(ErrorCode::permission_denied, "{} is a symlink", path);
  if (!S_ISDIR(status.st_mode)) return fail(ErrorCode::permission_denied, "{} is not a directory", path);
  return {};
}

Outcome<void> check_isolation(const std::optional<Isolation>& isolation, const Settings& settings) {
  if (!isolation) {
    if (settings.allow_host_network) return {};
    return refuse(Code::denied, "isolation is missing; without it the container would have the host's network");
  }
  if (auto name = check_interface(isolation->bridge); !name) {
    return refuse(Code::bad_request, "isolation.bridge: {}", name.error().message);
  }
  auto bridge = settings.bridges.find(isolation->bridge);
  if (bridge == settings.bridges.end()) {
    return refuse(Code::denied, "isolation.bridge: {} is not a bridge for agents", quote(isolation->bridge));
  }
  auto address = parse_ipv4(isolation->gateway_ip);
  if (!address) {
    return refuse(Code::bad_request, "isolation.gateway_ip: {} is not an IPv4 address",
                  quote(std::string_view(isolation->gateway_ip).substr(0, 64)));
  }
  if (!bridge->second.holds_host(*address)) {
    return refuse(Code::denied, "isolation.gateway_ip: {} is not an address on {}", isolation->gateway_ip,
                  isolation->bridge);
  }
  return {};
}

}  // namespace hive::priv
