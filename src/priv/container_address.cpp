#include "priv/container_address.h"

#include <optional>
#include <set>

#include "base/strings.h"
#include "priv/beneath.h"
#include "priv/container_conf.h"

namespace hive::priv {

namespace {

constexpr size_t max_containers = 10'000;
constexpr size_t max_address_file = 64;
constexpr std::chrono::seconds patience{5};
constexpr std::string_view conf_suffix = ".conf";

std::optional<std::uint32_t> address_in(std::string_view text) {
  return parse_ipv4(text.substr(0, text.find('/')));
}

// What all other containers have, by configuration and by record.
Result<std::set<std::uint32_t>> taken_addresses(const Site& site, int records, const std::string& container) {
  std::set<std::uint32_t> taken;
  for (const std::string& name : TRY(list_names(records, max_containers))) {
    if (name == container) continue;
    auto text = read_file_beneath(records, name, max_address_file);
    if (auto address = text ? address_in(trim(*text)) : std::nullopt) taken.insert(*address);
  }
  for (const std::string& name : TRY(list_names(site.conf.get(), max_containers))) {
    if (!name.ends_with(conf_suffix) || name.starts_with('.')) continue;
    std::string other = name.substr(0, name.size() - conf_suffix.size());
    if (other == container) continue;
    // A configuration that can't be read has no address that anybody uses.
    auto conf = read_container_conf(site.conf.get(), site.layout, other);
    auto text = conf ? conf->value("LOCAL_ADDRESS") : std::nullopt;
    if (auto address = text ? address_in(*text) : std::nullopt) taken.insert(*address);
  }
  return taken;
}

}  // namespace

Outcome<std::string> container_address(const Site& site, const std::string& container, const ConfFile& conf,
                                       const Ipv4Network& network, std::uint32_t gateway) {
  UniqueFd records = TRY(site.state_folder("address"));
  auto recorded_text = read_file_beneath(records.get(), container, max_address_file);
  std::optional<std::uint32_t> recorded = recorded_text ? address_in(trim(*recorded_text)) : std::nullopt;
  std::optional<std::uint32_t> configured = address_in(conf.value("LOCAL_ADDRESS").value_or(""));
  auto fits = [&](std::optional<std::uint32_t> address) {
    return address && *address != gateway && network.holds_host(*address);
  };
  auto text = [&](std::uint32_t address) { return fmt::format("{}/{}", format_ipv4(address), network.prefix_length); };
  // The common case, without a look at all other containers.
  if (fits(configured) && configured == recorded) return text(*configured);

  UniqueFd lock = TRY(site.lock("address", patience));
  auto taken = TRY(taken_addresses(site, records.get(), container));
  std::optional<std::uint32_t> chosen;
  for (const auto& candidate : {configured, recorded}) {
    if (!chosen && fits(candidate) && !taken.contains(*candidate)) chosen = candidate;
  }
  for (std::uint32_t address = network.address + 1; !chosen && address < network.broadcast(); ++address) {
    if (fits(address) && !taken.contains(address)) chosen = address;
  }
  if (!chosen) return refuse(Code::limit_reached, "every address of the bridge's network is taken");
  TRY(replace_file(records.get(), container, text(*chosen) + "\n", 0600));
  return text(*chosen);
}

}  // namespace hive::priv
