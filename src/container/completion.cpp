#include "container/completion.h"

#include <algorithm>

#include <CLI/CLI.hpp>

#include "container/names.h"
#include "container/record.h"

namespace hive::container {

namespace {

constexpr std::string_view bash_script = R"script(# bash completion for hive-container
_hive_container() {
  local word="${COMP_WORDS[COMP_CWORD]}"
  mapfile -t COMPREPLY < <("${COMP_WORDS[0]}" __complete -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)
  [ ${#COMPREPLY[@]} -gt 0 ] || compopt -o default 2>/dev/null
}
complete -F _hive_container hive-container
)script";

constexpr std::string_view zsh_script = R"script(#compdef hive-container
_hive_container() {
  local -a words_found
  words_found=("${(@f)$(${words[1]} __complete -- "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ -n "${words_found[*]}" ]]; then compadd -- "${words_found[@]}"; else _files; fi
}
if [[ "${funcstack[1]}" == _hive_container ]]; then
  _hive_container "$@"
else
  compdef _hive_container hive-container
fi
)script";

constexpr std::string_view fish_script = R"script(# fish completion for hive-container
function __hive_container_candidates
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    $program __complete -- $words (commandline -ct) 2>/dev/null
end
complete -c hive-container -a '(__hive_container_candidates)'
)script";

const CLI::App* find_command(const CLI::App& app, const std::vector<std::string>& words) {
  for (size_t i = 0; i + 1 < words.size(); ++i) {
    auto found = app.get_subcommands([&](const CLI::App* command) { return command->get_name() == words[i]; });
    if (!found.empty()) return found.front();
  }
  return nullptr;
}

void add_options(const CLI::App& app, std::vector<std::string>& all) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      all.push_back("--" + name);
  }
}

}  // namespace

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return std::string(bash_script);
  if (shell == "zsh") return std::string(zsh_script);
  if (shell == "fish") return std::string(fish_script);
  return "";
}

std::string candidates(const CLI::App& app, const std::vector<std::string>& words, const Layout& layout) {
  const std::string current = words.empty() ? "" : words.back();
  const CLI::App* command = find_command(app, words);
  std::vector<std::string> all;
  if (current.starts_with('-')) {
    add_options(app, all);
    if (command != nullptr) add_options(*command, all);
  } else if (command == nullptr) {
    for (const CLI::App* each : app.get_subcommands([](const CLI::App* each) { return !each->get_group().empty(); }))
      all.push_back(each->get_name());
  } else if (command->get_name() != "create") {
    for (const std::string& name : list_containers(layout).value_or(std::vector<std::string>{}))
      all.emplace_back(agent_of(name));
  }
  std::string text;
  for (const std::string& word : all) {
    if (word.starts_with(current)) text += word + "\n";
  }
  return text;
}

}  // namespace hive::container
