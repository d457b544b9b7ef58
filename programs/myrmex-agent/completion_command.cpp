#include <cstdio>
#include <string_view>

#include <fmt/format.h>

#include "subcommands.h"

namespace hive::agent {

namespace {

constexpr std::string_view help_text =
    R"(myrmex-agent completion: print a completion script

Usage:
  myrmex-agent completion bash|zsh|fish

Examples:
  source <(myrmex-agent completion bash)      # in ~/.bashrc
  source <(myrmex-agent completion zsh)       # in ~/.zshrc, after compinit
  myrmex-agent completion fish | source       # in ~/.config/fish/config.fish
)";

constexpr std::string_view bash_script = R"(# bash completion for myrmex-agent
_myrmex_agent() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words
  COMPREPLY=()
  case $previous in
    --config | --check-config | -c) compopt -o default; return ;;
    -o | --output) words='text json' ;;
    --gateway | --timeout) return ;;
    completion) words='bash zsh fish' ;;
    *)
      case ${COMP_WORDS[1]} in
        doctor) words='--config --gateway --timeout --output --help' ;;
        completion) return ;;
        *)
          words='--config --check-config --json --version --help'
          [ "$COMP_CWORD" -eq 1 ] && words="doctor completion $words"
          ;;
      esac
      ;;
  esac
  while IFS= read -r word; do COMPREPLY+=("$word"); done < <(compgen -W "$words" -- "$current")
}
complete -F _myrmex_agent myrmex-agent
)";

constexpr std::string_view zsh_script = R"(#compdef myrmex-agent
_myrmex_agent() {
  if (( CURRENT > 2 )) && [[ ${words[2]} == doctor ]]; then
    shift words; (( CURRENT-- ))
    _arguments '--config[configuration]:file:_files' '--gateway[look at this gateway alone]:gateway:' \
      '--timeout[seconds a step may take]:seconds:' '(-o --output)'{-o,--output}'[form of the report]:form:(text json)' \
      '--help[explain]'
  elif (( CURRENT > 2 )) && [[ ${words[2]} == completion ]]; then
    _values shell bash zsh fish
  else
    _arguments '--config[configuration]:file:_files' '--check-config[explain a configuration]:file:_files' \
      '--json[the report as JSON]' '--version[print the version]' '--help[explain]' \
      '1:command:((doctor\:"why it does not connect" completion\:"print a completion script"))'
  fi
}
compdef _myrmex_agent myrmex-agent
)";

constexpr std::string_view fish_script = R"(# fish completion for myrmex-agent
complete -c myrmex-agent -f
complete -c myrmex-agent -n __fish_use_subcommand -a doctor -d 'why it does not connect'
complete -c myrmex-agent -n __fish_use_subcommand -a completion -d 'print a completion script'
complete -c myrmex-agent -l config -rF -d 'configuration'
complete -c myrmex-agent -n __fish_use_subcommand -l check-config -rF -d 'explain a configuration'
complete -c myrmex-agent -n __fish_use_subcommand -l json -d 'with --check-config: as JSON'
complete -c myrmex-agent -n __fish_use_subcommand -l version -d 'print the version'
complete -c myrmex-agent -l help -d 'explain'
complete -c myrmex-agent -n '__fish_seen_subcommand_from doctor' -l gateway -x -d 'look at this gateway alone'
complete -c myrmex-agent -n '__fish_seen_subcommand_from doctor' -l timeout -x -d 'seconds a step may take'
complete -c myrmex-agent -n '__fish_seen_subcommand_from doctor' -s o -l output -xa 'text json' -d 'form of the report'
complete -c myrmex-agent -n '__fish_seen_subcommand_from completion' -a 'bash zsh fish'
)";

}  // namespace

int completion_command(std::span<char* const> words) {
  const std::string_view shell = words.size() == 1 ? std::string_view(words.front()) : std::string_view();
  if (shell == "--help" || shell == "-h") {
    fmt::print("{}", help_text);
  } else if (shell == "bash") {
    fmt::print("{}", bash_script);
  } else if (shell == "zsh") {
    fmt::print("{}", zsh_script);
  } else if (shell == "fish") {
    fmt::print("{}", fish_script);
  } else {
    fmt::print(stderr, "myrmex-agent completion: name one of bash, zsh, fish\n\n{}", help_text);
    return 2;
  }
  return 0;
}

}  // namespace hive::agent
