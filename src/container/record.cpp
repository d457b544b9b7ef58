#include "container/record.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/strings.h"
#include "priv/names.h"
#include "protocol/json.h"

namespace hive::container {

namespace {

constexpr size_t max_record_bytes = 4096;
constexpr std::string_view conf_suffix = ".conf";
constexpr std::string_view record_suffix = ".json";

/// The names of the files in a folder that end so, without that end, in order. A folder that is not there holds none.
Result<std::vector<std::string>> names_in(const std::string& folder, std::string_view suffix) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    std::string name = at->path().filename().string();
    if (!name.ends_with(suffix) || name.starts_with('.')) continue;
    name.resize(name.size() - suffix.size());
    if (priv::check_any_container(name)) names.push_back(std::move(name));
  }
  if (error && error != std::errc::no_such_file_or_directory) {
    return std::unexpected(system_error(error.value(), folder));
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace

std::vector<AgentFolder> agent_folders(std::string_view agent) {
  return {{"state", fmt::format("/agents/{}/state", agent)},
          {"work", fmt::format("/agents/{}/work", agent)},
          {"harness", fmt::format("/agents/{}/harness", agent)},
          {"claude", fmt::format("/home/{}/.claude", agent)}};
}

Result<Record> load_record(std::string_view name, const Layout& layout) {
  const std::string path = layout.record(name);
  const std::string text = TRY(read_file(path, max_record_bytes));
  const std::vector<json::Member> members = TRY_CONTEXT(path, json::parse_object(text));
  auto text_of = [&members](std::string_view key) {
    auto raw = json::find(members, key);
    return raw ? json::decode_string(*raw).value_or("") : std::string();
  };
  auto uid = json::find(members, "uid").and_then(json::decode_integer);
  if (!uid || *uid <= 0 || *uid > 0xfffffffe) return fail(ErrorCode::corrupt, "{}: \"uid\" is no user id", path);
  return Record{.name = std::string(name),
                .uid = static_cast<uid_t>(*uid),
                .bridge = text_of("bridge"),
                .gateway_ip = text_of("gateway_ip"),
                .hive_agent = text_of("hive_agent")};
}

Result<void> save_record(const Record& record, const Layout& layout) {
  TRY(make_private_folder(layout.state()));
  std::string text =
      fmt::format("{{\"name\": {}, \"uid\": {}, \"bridge\": {}, \"gateway_ip\": {}, \"hive_agent\": {}}}\n",
                  json::encode_string(record.name), record.uid, json::encode_string(record.bridge),
                  json::encode_string(record.gateway_ip), json::encode_string(record.hive_agent));
  return write_file_atomically(layout.record(record.name), text, 0600);
}

Result<std::vector<std::string>> list_containers(const Layout& layout) {
  return names_in(layout.conf_folder(), conf_suffix);
}

Result<std::vector<Record>> load_records(const Layout& layout) {
  std::vector<Record> records;
  for (const std::string& name : TRY(names_in(layout.state(), record_suffix)))
    records.push_back(TRY(load_record(name, layout)));
  return records;
}

}  // namespace hive::container
