#include "config/secret_reference.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>

#include <sys/stat.h>

#include "base/file.h"
#include "base/strings.h"

namespace hive::config {

namespace {

constexpr std::size_t max_secret_bytes = 65536;

bool is_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

bool is_variable_name(std::string_view name) {
  return !name.empty() && !(name[0] >= '0' && name[0] <= '9') && std::ranges::all_of(name, is_word);
}

bool is_agenix_name(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         std::ranges::all_of(name, [](char c) { return is_word(c) || c == '.' || c == '-'; });
}

// Group-readable is allowed, unlike for a key file: systemd credentials and mounted Kubernetes secrets reach a service
// through its group.
Result<std::string> read_secret_file(const std::string& path) {
  struct stat status{};
  if (::stat(path.c_str(), &status) != 0) return std::unexpected(system_error(errno, path));
  if ((status.st_mode & 027) != 0) {
    return fail(ErrorCode::permission_denied, "{}: mode {:04o} lets others read or change a secret; run: chmod 600 {}",
                path, status.st_mode & 07777U, path);
  }
  return read_file(path, max_secret_bytes);
}

Result<std::string> read_variable(const std::string& name, std::string_view reference, const SecretSources& sources) {
  if (!is_variable_name(name)) {
    return fail(ErrorCode::invalid_argument, "the secret reference {} does not name an environment variable",
                quote(reference));
  }
  std::optional<std::string> value = sources.environment(name);
  if (!value) {
    return fail(ErrorCode::not_found,
                "the secret reference {} cannot be resolved: the environment variable {} is not set", quote(reference),
                name);
  }
  return *std::move(value);
}

Result<std::string> read_vault(std::string_view reference, const SecretSources& sources) {
  std::string_view place = reference.substr(std::string_view("vault:").size());
  std::size_t hash = place.find('#');
  if (hash == 0 || hash == std::string_view::npos || hash + 1 == place.size()) {
    return fail(ErrorCode::invalid_argument,
                "the secret reference {} needs a path and a field, as in vault:secret/data/gateway#token",
                quote(reference));
  }
  if (!sources.vault) {
    return fail(ErrorCode::invalid_argument,
                "the secret reference {} cannot be resolved: this program does not read from Vault", quote(reference));
  }
  Result<std::string> value = sources.vault(std::string(place.substr(0, hash)), std::string(place.substr(hash + 1)));
  if (value) return value;
  return fail(value.error().code, "the secret reference {} cannot be resolved: {}", quote(reference),
              value.error().message);
}

Result<std::string> look_up(std::string_view reference, const SecretSources& sources) {
  auto read = [&](const std::string& path) -> Result<std::string> {
    Result<std::string> content = sources.file(path);
    if (content) return content;
    return fail(content.error().code, "the secret reference {} cannot be resolved: {}", quote(reference),
                content.error().message);
  };
  if (reference.starts_with("${") && reference.ends_with("}")) {
    return read_variable(std::string(reference.substr(2, reference.size() - 3)), reference, sources);
  }
  if (reference.starts_with("env:")) return read_variable(std::string(reference.substr(4)), reference, sources);
  if (reference.starts_with("file:")) {
    std::string path(reference.substr(5));
    if (!path.starts_with('/') || path.contains('\0')) {
      return fail(ErrorCode::invalid_argument, "the secret reference {} needs an absolute path, as in file:/path",
                  quote(reference));
    }
    return read(path);
  }
  if (reference.starts_with("agenix:")) {
    std::string name(reference.substr(7));
    if (!is_agenix_name(name)) {
      return fail(ErrorCode::invalid_argument,
                  "the secret reference {} needs a name of letters, digits, '.', '_' and '-'", quote(reference));
    }
    return read(sources.agenix_folder + "/" + name);
  }
  if (reference.starts_with("vault:")) return read_vault(reference, sources);
  return fail(ErrorCode::invalid_argument, "the secret reference {} is not complete; write ${{NAME}} or env:NAME",
              quote(reference));
}

}  // namespace

const SecretSources& SecretSources::system() {
  static const SecretSources sources{
      .environment = [](const std::string& name) -> std::optional<std::string> {
        const char* value = std::getenv(name.c_str());
        if (value == nullptr) return std::nullopt;
        return value;
      },
      .file = read_secret_file,
  };
  return sources;
}

bool is_secret_reference(std::string_view text) {
  return text.starts_with("${") || text.starts_with("env:") || text.starts_with("file:") ||
         text.starts_with("agenix:") || text.starts_with("vault:");
}

Result<std::string> resolve_secret(std::string_view reference, const SecretSources& sources) {
  std::string value = TRY(look_up(reference, sources));
  std::string_view trimmed = trim(value);
  if (trimmed.empty()) {
    return fail(ErrorCode::invalid_argument, "the secret reference {} resolves to nothing", quote(reference));
  }
  return std::string(trimmed);
}

}  // namespace hive::config
