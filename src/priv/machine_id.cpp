#include "priv/machine_id.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include <fcntl.h>
#include <sys/stat.h>
#include <systemd/sd-id128.h>

#include "base/strings.h"
#include "priv/beneath.h"
#include "priv/names.h"

namespace hive::priv {

namespace {

constexpr size_t id_bytes = 32;
constexpr size_t max_id_file = 256;
constexpr size_t max_containers = 10'000;
constexpr std::chrono::seconds patience{5};

// The id in the file `name`, or empty: what is not there, is a link or is no id all count as none.
std::string id_in(int folder, const std::string& name) {
  auto text = read_file_beneath(folder, name, max_id_file);
  if (!text) return {};
  std::string_view id = trim(*text);
  return is_machine_id(id) ? std::string(id) : std::string();
}

// The host's own id and the ids of all other containers, by record and by what their roots say.
Result<bool> is_taken(const Site& site, int records, const std::string& container, const std::string& id) {
  UniqueFd host = open_beneath(site.anchor.get(), site.layout.host_machine_id.c_str() + 1, O_RDONLY | O_NONBLOCK);
  if (host && trim(TRY(read_all(host.get(), "the host's machine id", max_id_file))) == id) return true;
  for (const std::string& other : TRY(list_names(records, max_containers))) {
    if (other != container && id_in(records, other) == id) return true;
  }
  for (const std::string& other : TRY(list_names(site.roots.get(), max_containers))) {
    if (other != container && check_any_container(other) && TRY(template_id(site.roots.get(), other)) == id)
      return true;
  }
  return false;
}

Result<std::string> new_id() {
  sd_id128_t id{};
  int status = sd_id128_randomize(&id);
  if (status < 0) return std::unexpected(system_error(-status, "make a machine id"));
  std::array<char, SD_ID128_STRING_MAX> text{};
  return std::string(sd_id128_to_string(id, text.data()));
}

}  // namespace

bool is_machine_id(std::string_view text) {
  return text.size() == id_bytes && text.find_first_not_of("0123456789abcdef") == std::string_view::npos &&
         text.find_first_not_of('0') != std::string_view::npos;
}

Result<std::string> machine_id_of(const Site& site, const std::string& container) {
  UniqueFd records = TRY(site.state_folder("machine-id"));
  if (std::string id = id_in(records.get(), container); !id.empty()) return id;
  // Two containers with the same id in their roots must not both find it free.
  UniqueFd lock = TRY(site.lock("machine-id", patience));
  std::string id = TRY(template_id(site.roots.get(), container));
  if (id.empty() || TRY(is_taken(site, records.get(), container, id))) id = TRY(new_id());
  TRY(replace_file(records.get(), container, id + "\n", 0600));
  return id;
}

Result<void> write_template_id(const Site& site, const std::string& container, const std::string& id) {
  UniqueFd root = TRY(make_folder(site.roots.get(), container, 0755));
  UniqueFd etc = TRY_CONTEXT(container, make_folder(root.get(), "etc", 0755));
  auto current = read_file_beneath(etc.get(), "machine-id", max_id_file);
  if (current && *current == id + "\n") return {};
  if (!current && current.error().code == ErrorCode::permission_denied) {
    return std::unexpected(with_context(current.error(), container + "/etc"));
  }
  TRY_CONTEXT(container + "/etc", replace_file(etc.get(), "machine-id", id + "\n", 0444));
  return {};
}

Result<std::string> template_id(int roots, const std::string& container) {
  UniqueFd etc = open_beneath(roots, (container + "/etc").c_str(), O_RDONLY | O_DIRECTORY);
  if (!etc && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP || errno == EXDEV)) return std::string();
  if (!etc) return std::unexpected(system_error(errno, container + "/etc"));
  return id_in(etc.get(), "machine-id");
}

}  // namespace hive::priv
