#include "agent/tools/host_facts.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <set>

#include <dirent.h>
#include <fcntl.h>

#include "base/strings.h"
#include "base/unique_fd.h"
#include "base/utf8.h"

namespace hive::agent {

namespace {

constexpr size_t max_names = 1000;
constexpr size_t max_table_bytes = size_t{4} << 20;

// Files of the kernel state no size, so they are read to their end.
std::string read_text(const std::string& path, size_t max_bytes) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  std::string text;
  char buffer[8192];
  while (file && text.size() < max_bytes) {
    ssize_t count = ::read(file.get(), buffer, sizeof(buffer));
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  return text;
}

std::string unquoted(std::string_view text) {
  text = trim(text);
  if (text.size() >= 2 && (text.front() == '"' || text.front() == '\'') && text.back() == text.front()) {
    text = text.substr(1, text.size() - 2);
  }
  return utf8::replace_invalid(text);
}

void append_once(std::vector<std::string>& all, std::string text) {
  if (std::ranges::find(all, text) == all.end()) all.push_back(std::move(text));
}

}  // namespace

std::string os_version(const std::string& root) {
  for (const char* path : {"/etc/os-release", "/usr/lib/os-release"}) {
    std::string text = read_text(root + path, size_t{64} << 10);
    for (std::string_view line : split(text, '\n')) {
      constexpr std::string_view key = "PRETTY_NAME=";
      if (line.starts_with(key) && line.size() > key.size()) return unquoted(line.substr(key.size()));
    }
  }
  std::string issue = read_text(root + "/etc/issue", 4096);
  std::string_view first = trim(std::string_view(issue).substr(0, issue.find('\n')));
  return first.empty() ? "Linux" : utf8::replace_invalid(first);
}

std::vector<std::string> listening_ports_in(std::string_view table) {
  std::vector<std::string> ports;
  for (std::string_view line : split(table, '\n')) {
    std::vector<std::string_view> fields;
    for (std::string_view word : split(line, ' ')) {
      if (!word.empty()) fields.push_back(word);
    }
    // sl local_address rem_address st ...; state 0A is TCP_LISTEN.
    if (fields.size() < 4 || fields[3] != "0A") continue;
    std::string_view address = fields[1];
    size_t colon = address.rfind(':');
    if (colon == std::string_view::npos) continue;
    address.remove_prefix(colon + 1);
    unsigned port = 0;
    auto [end, error] = std::from_chars(address.data(), address.data() + address.size(), port, 16);
    if (error != std::errc() || end != address.data() + address.size() || port > 65535) continue;
    append_once(ports, std::to_string(port));
  }
  return ports;
}

std::vector<std::string> listening_ports(const std::string& proc) {
  std::vector<std::string> ports;
  for (const char* table : {"/net/tcp", "/net/tcp6"}) {
    for (std::string& port : listening_ports_in(read_text(proc + table, max_table_bytes)))
      append_once(ports, std::move(port));
  }
  return ports;
}

std::vector<std::string> process_names(const std::string& proc) {
  std::vector<std::string> names;
  std::set<std::string> seen;
  std::unique_ptr<DIR, decltype([](DIR* folder) { ::closedir(folder); })> folder(::opendir(proc.c_str()));
  while (folder && names.size() < max_names) {
    const dirent* entry = ::readdir(folder.get());
    if (entry == nullptr) break;
    if (!parse_int64(entry->d_name)) continue;
    std::string folder_of_process = proc + "/" + entry->d_name;
    // Threads of the kernel have no command line, and are no service.
    if (read_text(folder_of_process + "/cmdline", 1).empty()) continue;
    std::string text = read_text(folder_of_process + "/comm", 256);
    std::string name = utf8::replace_invalid(trim(text));
    if (!name.empty() && seen.insert(name).second) names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> service_names(std::string_view listing) {
  std::vector<std::string> names;
  for (std::string_view line : split(listing, '\n')) {
    line = trim(line);
    std::string_view unit = line.substr(0, line.find(' '));
    constexpr std::string_view suffix = ".service";
    if (!unit.ends_with(suffix) || names.size() == max_names) continue;
    names.push_back(utf8::replace_invalid(unit.substr(0, unit.size() - suffix.size())));
  }
  return names;
}

}  // namespace hive::agent
