#include "cli/completion.h"

namespace hive::cli {

namespace {

// Bash cuts words at "=" and ":" and replaces only the piece behind the last cut, so the script hands over whole words
// and takes the part in front of that piece off the candidates.
constexpr std::string_view bash_script =
    R"script(# bash completion for myrmex; load with: source <(myrmex completion bash)
_myrmex() {
  local line="${COMP_LINE:0:COMP_POINT}" reply word piece prefix
  local -a words
  read -ra words <<<"$line"
  case "$line" in
    *[[:space:]]) words+=("") ;;
  esac
  word="${words[-1]}"
  piece="$word"
  [[ $COMP_WORDBREAKS == *=* ]] && piece="${piece##*=}"
  [[ $COMP_WORDBREAKS == *:* ]] && piece="${piece##*:}"
  prefix="${word%"$piece"}"
  COMPREPLY=()
  while IFS= read -r reply; do
    case "$reply" in
      :files) compopt -o default 2>/dev/null ;;
      :nospace) compopt -o nospace 2>/dev/null ;;
      *)
        reply="${reply%%$'\t'*}"
        COMPREPLY+=("${reply#"$prefix"}")
        ;;
    esac
  done < <("${words[0]/#~\//$HOME/}" __complete words -- "${words[@]:1}" 2>/dev/null)
}
complete -F _myrmex myrmex
)script";

constexpr std::string_view zsh_script = R"script(#compdef myrmex
# zsh completion for myrmex; load with: source <(myrmex completion zsh)
_myrmex() {
  local reply word description
  local -a candidates attached
  local -i files=0 nospace=0
  for reply in "${(@f)$(${words[1]} __complete words -- "${(@)words[2,CURRENT]}" 2>/dev/null)}"; do
    case "$reply" in
      ('') ;;
      (:files) files=1 ;;
      (:nospace) nospace=1 ;;
      (*)
        word="${reply%%$'\t'*}"
        description="${reply#*$'\t'}"
        candidates+=("${word//:/\\:}:${description}")
        ;;
    esac
  done
  if (( $#candidates )); then
    if (( nospace )); then
      _describe 'myrmex' candidates -S ''
    else
      _describe 'myrmex' candidates
    fi
  fi
  (( files )) && _files
  return 0
}
if [[ "${funcstack[1]}" == _myrmex ]]; then
  _myrmex "$@"
else
  compdef _myrmex myrmex
fi
)script";

constexpr std::string_view fish_script =
    R"script(# fish completion for myrmex; load with: myrmex completion fish | source
function __myrmex_candidates
    set -l words (commandline -opc)
    set -l program $words[1]
    set -e words[1]
    set -l replies ($program __complete words -- $words (commandline -ct) 2>/dev/null)
    for reply in $replies
        switch $reply
            case ':files'
                __fish_complete_path (commandline -ct)
            case ':nospace'
            case '*'
                echo $reply
        end
    end
end
complete -c myrmex -f -a '(__myrmex_candidates)'
)script";

}  // namespace

std::string completion_script(std::string_view shell) {
  if (shell == "bash") return std::string(bash_script);
  if (shell == "zsh") return std::string(zsh_script);
  if (shell == "fish") return std::string(fish_script);
  return "";
}

}  // namespace hive::cli
