#include "priv/switch_record.h"

#include <array>

#include "priv/beneath.h"
#include "priv/machine_id.h"
#include "priv/salvage.h"
#include "protocol/json_object.h"

namespace hive::priv {

namespace {

constexpr size_t max_record_bytes = 4096;
constexpr const char* record_folder = "switch";
constexpr std::array kinds = {SalvageKind::none, SalvageKind::done, SalvageKind::skipped_low_disk};

// Every number of a record, by name, for reading and for writing.
struct Number {
  std::string_view name;
  std::uint64_t SwitchRecord::* member;
};
constexpr std::array numbers = {Number{"bytes", &SwitchRecord::bytes},
                                Number{"entries", &SwitchRecord::entries},
                                Number{"skipped_special", &SwitchRecord::skipped_special},
                                Number{"changed", &SwitchRecord::changed},
                                Number{"cloned_files", &SwitchRecord::cloned_files},
                                Number{"nix_links", &SwitchRecord::nix_links}};

}  // namespace

std::string_view to_string(SalvageKind kind) {
  switch (kind) {
    case SalvageKind::none:
      return "none";
    case SalvageKind::done:
      return "done";
    case SalvageKind::skipped_low_disk:
      return "skipped_low_disk";
  }
  return "none";
}

std::string format_record(const SwitchRecord& record) {
  json::ObjectText object;
  object.text("staging", record.staging)
      .text("salvage", record.salvage)
      .text("old_root", record.old_root)
      .text("guest_id", record.guest_id)
      .boolean("ready", record.ready)
      .text("kind", to_string(record.kind));
  for (const Number& number : numbers)
    object.number(number.name, record.*number.member);
  return object.take() + "\n";
}

Result<SwitchRecord> parse_record(std::string_view text, std::string_view container) {
  auto members = TRY(json::parse_object(text, {.max_bytes = max_record_bytes, .max_depth = 2, .max_values = 64}));
  SwitchRecord record;
  auto string = [&](std::string_view key) {
    return json::decode_string(json::find(members, key).value_or("")).value_or(std::string());
  };
  record.staging = string("staging");
  record.salvage = string("salvage");
  record.old_root = string("old_root");
  record.guest_id = string("guest_id");
  auto ready = json::decode_boolean(json::find(members, "ready").value_or(""));
  std::string kind = string("kind");
  bool known_kind = false;
  for (SalvageKind candidate : kinds) {
    if (to_string(candidate) == kind) record.kind = candidate, known_kind = true;
  }
  bool good = is_stamped(record.staging, staging_prefix) && is_stamped(record.salvage, salvage_prefix) &&
              is_stamped(record.old_root, fmt::format("{}{}", container, old_root_mark)) &&
              (record.guest_id.empty() || is_machine_id(record.guest_id)) && ready && known_kind;
  if (!good) return fail(ErrorCode::corrupt, "not the record of a switch of {}", container);
  record.ready = *ready;
  for (const Number& number : numbers) {
    auto value = json::decode_integer(json::find(members, number.name).value_or(""));
    if (!value || *value < 0) return fail(ErrorCode::corrupt, "{} is not a number", number.name);
    record.*number.member = static_cast<std::uint64_t>(*value);
  }
  return record;
}

Result<void> save_record(const Site& site, const std::string& container, const SwitchRecord& record) {
  UniqueFd folder = TRY(site.state_folder(record_folder));
  return replace_file(folder.get(), container, format_record(record), 0600);
}

Result<std::optional<SwitchRecord>> load_record(const Site& site, const std::string& container) {
  UniqueFd folder = TRY(site.state_folder(record_folder));
  auto text = read_file_beneath(folder.get(), container, max_record_bytes);
  if (!text && text.error().code == ErrorCode::not_found) return std::nullopt;
  std::string where = fmt::format("{}/{}/{}", site.layout.state_dir, record_folder, container);
  if (!text) return std::unexpected(with_context(text.error(), where));
  return TRY_CONTEXT(where, parse_record(*text, container));
}

Result<void> remove_record(const Site& site, const std::string& container) {
  UniqueFd folder = TRY(site.state_folder(record_folder));
  return remove_file(folder.get(), container);
}

}  // namespace hive::priv
