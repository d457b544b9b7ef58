# shellcheck shell=bash
# What the commands of ./hive share. Sourced, never run. HIVE_ROOT is the checkout.

: "${HIVE_ROOT:?is set by ./hive}"

# Where the programs are; HIVE_BIN points to another build, for example one with sanitizers.
# shellcheck disable=SC2034 # used by the commands
if [ -n "${HIVE_BIN-}" ]; then hive_bin=$(realpath -m -- "$HIVE_BIN"); else hive_bin=$HIVE_ROOT/build/release/bin; fi

# Colour only for people: on a terminal, and not when NO_COLOR says no (no-color.org).
if [ -t 2 ] && [ -z "${NO_COLOR-}" ] && [ "${TERM-dumb}" != dumb ]; then
  hive_bold=$'\e[1m' hive_red=$'\e[31m' hive_plain=$'\e[0m'
else
  hive_bold='' hive_red='' hive_plain=''
fi

# say TEXT...: one line of progress, on standard error so that results stay alone on standard output.
say() { printf '%s%s%s\n' "$hive_bold" "$*" "$hive_plain" >&2; }

# die TEXT...: the command failed. One line: what, and what to do about it.
die() {
  printf '%shive: %s%s\n' "$hive_red" "$*" "$hive_plain" >&2
  exit 1
}

# usage_error TEXT...: the command line is wrong.
usage_error() {
  printf '%shive: %s%s\n' "$hive_red" "$*" "$hive_plain" >&2
  exit 2
}

# run_tool NAME ARGUMENTS...: another command of ./hive.
run_tool() {
  local name=$1
  shift
  bash "$HIVE_ROOT/tools/$name.sh" "$@"
}

# prepare GROUP...: installs what the groups of packaging/packages.txt need. Not again where a command of ours calls
# another one: that sets HIVE_READY.
prepare() { [ -n "${HIVE_READY-}" ] || run_tool setup --quiet build "$@"; }

# build_programs: brings the programs up to date, unless HIVE_BIN names others.
build_programs() { [ -n "${HIVE_READY-}${HIVE_BIN-}" ] || run_tool build --quiet; }

# need_value OPTION COUNT: fails unless the option is followed by a value.
need_value() { [ "$2" -ge 2 ] || usage_error "$1 needs a value"; }

# json_string TEXT: a JSON string with its quotes.
json_string() {
  local text=$1
  [[ $text != *[$'\x01'-$'\x1f']* ]] || die "a path holds a control character; choose another folder"
  text=${text//\\/\\\\}
  text=${text//\"/\\\"}
  printf '"%s"' "$text"
}

# sh_quote TEXT: the text as one word for any POSIX shell.
sh_quote() { printf "'%s'" "${1//\'/\'\\\'\'}"; }

# seconds_since START: whole seconds since an earlier $EPOCHSECONDS.
seconds_since() { echo $((EPOCHSECONDS - $1)); }

# build_jobs: compile jobs that fit this machine; a job needs about one GiB of memory.
build_jobs() {
  local jobs memory
  jobs=$(nproc)
  memory=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
  [ "$memory" -ge 1 ] || memory=1
  [ "$jobs" -le "$memory" ] || jobs=$memory
  echo "${HIVE_JOBS:-$jobs}"
}

# hive_node: a Node.js of release 22 or later; the machine's own, or the one that setup installed from npm.
hive_node() {
  local candidate major
  for candidate in node "$HIVE_ROOT"/tests/node_modules/node-linux-*/bin/node; do
    major=$("$candidate" --version 2>/dev/null | sed -n 's/^v\([0-9]*\)\..*/\1/p') || continue
    if [ "${major:-0}" -ge 22 ]; then
      command -v "$candidate"
      return 0
    fi
  done
  return 1
}
